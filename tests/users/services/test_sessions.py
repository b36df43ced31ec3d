"""A session ends once, for one reason, and is forgotten a month later."""

import uuid
from datetime import timedelta

import pytest
from django.utils.timezone import now

from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile
from tests.users.auth_client import signed_in
from users.models import RefreshToken, SignInSession
from users.services import sessions

pytestmark = pytest.mark.django_db
MONTH = timedelta(days=30)


def test_the_first_end_of_a_session_records_its_reason(profile: Profile) -> None:
    signed_in(profile)
    session, moment = SignInSession.objects.get(), now()

    assert sessions.end(session_id=session.pk, reason=SignInSession.Reason.STAFF, now=moment)
    assert not sessions.end(session_id=session.pk, reason=SignInSession.Reason.SIGNED_OUT, now=now())
    assert not sessions.end(session_id=uuid.uuid4(), reason=SignInSession.Reason.STAFF, now=now())

    session.refresh_from_db()
    assert (session.revoked_at, session.revoked_reason) == (moment, SignInSession.Reason.STAFF)


def test_ending_one_session_leaves_the_others(profile: Profile) -> None:
    signed_in(profile)
    first = SignInSession.objects.get()
    signed_in(profile)

    sessions.end(session_id=first.pk, reason=SignInSession.Reason.STAFF, now=now())

    assert SignInSession.objects.active(now=now()).count() == 1


def test_ending_all_ends_only_that_users_active_sessions(profile: Profile, chain: FakeChain) -> None:
    signed_in(profile)
    ran_out = SignInSession.objects.get()
    SignInSession.objects.update(expires_at=now())
    signed_in(profile)
    signed_in(profile)
    signed_in(chain.create_profile())
    moment, user = now(), ran_out.user

    assert sessions.end_all(user_id=user.pk, reason=SignInSession.Reason.STAFF, now=moment) == 2
    assert sessions.end_all(user_id=user.pk, reason=SignInSession.Reason.STAFF, now=now()) == 0

    ran_out.refresh_from_db()
    assert (ran_out.revoked_at, ran_out.revoked_reason) == (None, "")
    assert SignInSession.objects.filter(user=user, revoked_at=moment, revoked_reason="staff").count() == 2
    assert SignInSession.objects.active(now=now()).exclude(user=user).count() == 1


def test_another_users_refresh_token_is_not_signed_out(profile: Profile, chain: FakeChain) -> None:
    signed_in(profile)
    mine = SignInSession.objects.get()
    theirs = signed_in(chain.create_profile()).refresh

    for token in (theirs, "rt_unknown"):
        sessions.sign_out(user_id=mine.user_id, session_id=None, token=token, now=now())
    assert SignInSession.objects.active(now=now()).count() == 2

    sessions.sign_out(user_id=mine.user_id, session_id=mine.pk, token=theirs, now=now())
    assert SignInSession.objects.active(now=now()).exclude(user=mine.user).count() == 1
    assert not SignInSession.objects.active(now=now()).filter(user=mine.user).exists()


def test_a_session_lasts_as_long_as_configured(profile: Profile) -> None:
    signed_in(profile)
    session = SignInSession.objects.get()

    assert session.expires_at - session.created_at == MONTH
    assert session.is_active(now=session.expires_at - timedelta(milliseconds=1))
    assert not session.is_active(now=session.expires_at)
    assert not SignInSession.objects.active(now=session.expires_at).exists()


def test_an_expired_session_is_deleted_a_month_later_with_its_whole_chain(profile: Profile) -> None:
    token, moment = signed_in(profile).refresh, now()
    for minute in range(5):
        token = sessions.refresh(token=token, now=moment + timedelta(minutes=minute)).refresh
    limit = SignInSession.objects.get().expires_at + MONTH

    assert sessions.purge(now=limit) == 0
    assert RefreshToken.objects.count() == 6
    assert sessions.purge(now=limit + timedelta(milliseconds=1)) == 1
    assert not RefreshToken.objects.exists()


def test_a_revoked_session_is_deleted_a_month_later_and_active_ones_stay(profile: Profile) -> None:
    signed_in(profile)
    session, moment = SignInSession.objects.get(), now()
    sessions.end(session_id=session.pk, reason=SignInSession.Reason.SIGNED_OUT, now=moment)
    signed_in(profile)

    assert sessions.purge(now=moment + MONTH) == 0
    assert sessions.purge(now=moment + MONTH + timedelta(milliseconds=1)) == 1
    assert SignInSession.objects.get().revoked_at is None
