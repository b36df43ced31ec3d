"""Of sign-ins at the same moment, one per nonce wins, and a profile gets one user."""

import pytest
from django.utils.timezone import now

from credits.models import CreditAccount
from tests.fakes.profiles import Profile
from tests.threads import at_once
from tests.users.auth_client import CALLER, personal_sign, signed_in
from users.errors import ChallengeUsed
from users.models import SignInSession, User
from users.services import sign_in
from users.services.sessions import TokenPair

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_nonce_sent_concurrently_opens_one_session(profile: Profile) -> None:
    challenge = sign_in.issue_challenge(profile_address=profile.profile_address, client=CALLER, now=now())
    signature = personal_sign(profile.controller, challenge.message)

    outcomes = at_once(
        [lambda: sign_in.sign_in(nonce=challenge.nonce, signature=signature, client=CALLER, now=now())] * 12
    )

    assert sum(isinstance(outcome, TokenPair) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, ChallengeUsed) for outcome in outcomes) == 11
    assert SignInSession.objects.count() == 1


def test_concurrent_first_sign_ins_create_one_user_with_one_account(profile: Profile) -> None:
    outcomes = at_once([lambda: signed_in(profile)] * 12)

    assert all(isinstance(outcome, TokenPair) for outcome in outcomes)
    assert User.objects.count() == CreditAccount.objects.count() == 1
    assert SignInSession.objects.count() == 12
