"""What support does about sessions: with a reason, by role, once."""

import pytest
from django.utils.timezone import now

from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile
from tests.staff import browser_of, confirm, everything, member, messages_of, prove
from tests.users.auth_client import signed_in
from users.models import SignInSession, User

pytestmark = pytest.mark.django_db
SUPPORT = {"support"}


def test_a_session_is_ended(profile: Profile) -> None:
    signed_in(profile)
    signed_in(profile)
    first, second = SignInSession.objects.order_by("created_at")
    prove("users_signinsession", "revoke", first, roles=SUPPORT)
    first.refresh_from_db()
    assert first.revoked_reason == SignInSession.Reason.STAFF
    assert list(SignInSession.objects.active(now=now())) == [second]


def test_only_that_users_sessions_are_ended(profile: Profile, chain: FakeChain) -> None:
    other = chain.create_profile()
    for who in (profile, profile, other):
        signed_in(who)
    user = User.objects.get(profile_address=profile.profile_address)
    message = prove("users_user", "revoke_sessions", user, roles=SUPPORT)
    assert "2 sessions are ended" in message
    assert [session.user.profile_address for session in SignInSession.objects.active(now=now())] == [
        other.profile_address
    ]


def test_ended_sessions_stay_unchanged(profile: Profile) -> None:
    signed_in(profile)
    SignInSession.objects.update(revoked_at=now(), revoked_reason="signed-out")
    before, session = everything(), SignInSession.objects.get()
    client = browser_of(member("support"))
    for model, action, row in (
        ("users_signinsession", "revoke", session),
        ("users_user", "revoke_sessions", session.user),
    ):
        assert "does not apply" in messages_of(confirm(client, model, action, row))
    assert everything() == before
