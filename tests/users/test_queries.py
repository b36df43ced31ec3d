"""What sign-in reads: each session is its own, and its user's."""

import uuid

import pytest
from django.utils.timezone import now

from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile
from tests.users.auth_client import authenticate, signed_in
from users import queries
from users.errors import SessionEnded
from users.models import SignInSession, User
from users.services import sessions

pytestmark = pytest.mark.django_db


def test_the_requested_session_of_many_is_read_with_its_user(profile: Profile, chain: FakeChain) -> None:
    for signer in (profile, chain.create_profile(), profile):
        signed_in(signer)
    for session in SignInSession.objects.select_related("user"):
        row = queries.session_with_user(session_id=session.pk)
        assert row is not None
        of_session = SignInSession.objects.values().get(pk=session.pk)
        of_user = User.objects.values().get(pk=session.user_id)
        assert {name: getattr(row, name) for name in of_session} == of_session
        assert {name: getattr(row.user, name) for name in of_user} == of_user
    assert queries.session_with_user(session_id=uuid.uuid4()) is None


@pytest.mark.parametrize("ended", range(3))
def test_a_token_is_valid_as_long_as_its_session(profile: Profile, chain: FakeChain, ended: int) -> None:
    tokens = [signed_in(signer).access for signer in (profile, chain.create_profile(), profile)]
    authenticated = [authenticate(token) for token in tokens]
    session_ids = [token.session_id for _, token in authenticated]
    assert len(set(session_ids)) == 3
    assert [user.profile_address for user, _ in authenticated] == [
        token.profile_address for _, token in authenticated
    ]
    over = session_ids[ended]
    sessions.end(session_id=over, reason=SignInSession.Reason.STAFF, now=now())
    for token, session_id in zip(tokens, session_ids, strict=True):
        if session_id == over:
            with pytest.raises(SessionEnded):
                authenticate(token)
        else:
            assert authenticate(token)[1].session_id == session_id
