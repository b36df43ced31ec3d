"""A refresh token is good for one exchange, which can be repeated once if its response was lost."""

import random
import secrets
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils.timezone import now

from gateway.chain.errors import NodeUnavailable
from gateway.chain.lsp6 import ALL_PERMISSIONS, Permission
from gateway.chain.types import KeyManagerState
from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile
from tests.users.auth_client import signed_in
from users.errors import (
    AccountInactive,
    ControllerRevoked,
    RefreshTokenReused,
    RefreshTokenUnknown,
    SessionEnded,
)
from users.models import RefreshToken, SignInSession, User
from users.services import sessions
from users.tokens import AccessToken

pytestmark = pytest.mark.django_db
GRACE = timedelta(seconds=10)
REPEATABLE = timedelta(minutes=10)
TICK = timedelta(milliseconds=1)


@pytest.fixture
def token(profile: Profile) -> str:
    """The first refresh token of a session."""
    return signed_in(profile).refresh


def _assert_ended(reason: SignInSession.Reason) -> None:
    session = SignInSession.objects.get()
    assert session.revoked_at is not None
    assert session.revoked_reason == reason


def _assert_untouched() -> None:
    assert SignInSession.objects.get().revoked_at is None
    assert RefreshToken.objects.get().used_at is None


def test_the_next_pair_belongs_to_the_same_session(token: str) -> None:
    pair = sessions.refresh(token=token, now=now())

    assert pair.refresh != token
    session = SignInSession.objects.get()
    assert AccessToken(pair.access).session_id == session.pk
    assert RefreshToken.objects.filter(session=session).count() == 2


def test_a_chain_of_refreshes_continues_until_the_session_expires(token: str, settings: Any) -> None:
    end = SignInSession.objects.get().expires_at
    for days in range(1, 4):
        token = sessions.refresh(token=token, now=now() + timedelta(days=days)).refresh

    assert SignInSession.objects.get().expires_at == end
    with pytest.raises(SessionEnded):
        sessions.refresh(token=token, now=end)


def test_a_repeat_within_the_grace_gets_the_very_same_token(token: str) -> None:
    start = now()
    first = sessions.refresh(token=token, now=start)

    again = sessions.refresh(token=token, now=start + GRACE)

    assert again.refresh == first.refresh
    assert RefreshToken.objects.count() == 2
    sessions.refresh(token=again.refresh, now=start + GRACE)


def _after_grace() -> timedelta:
    """Return a time after an exchange at which it can still be repeated."""
    return random.choice([GRACE + TICK, REPEATABLE, timedelta(seconds=random.uniform(10.1, 599))])


def test_an_exchange_whose_response_was_lost_is_repeated_once_with_the_very_same_token(
    token: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "users.security")
    start = now()
    lost = sessions.refresh(token=token, now=start)

    repeated = start + _after_grace()
    again = sessions.refresh(token=token, now=repeated)
    # A second tab that waited for the first repeats it at the same time.
    other = sessions.refresh(token=token, now=repeated + GRACE)

    assert again.refresh == other.refresh == lost.refresh
    assert RefreshToken.objects.count() == 2
    assert "was repeated" in caplog.text
    assert token not in caplog.text
    # The next exchange can be repeated as well.
    sessions.refresh(token=again.refresh, now=repeated)
    sessions.refresh(token=again.refresh, now=repeated + _after_grace())
    assert SignInSession.objects.active(now=repeated).count() == 1


@pytest.mark.parametrize("case", ["too late", "twice", "the next one is used"])
def test_a_token_that_two_parties_use_ends_the_session_for_both(
    token: str, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    start = now()
    newest = sessions.refresh(token=token, now=start)
    moment = start + REPEATABLE + TICK
    if case == "twice":
        moment = start + timedelta(minutes=1)
        sessions.refresh(token=token, now=moment)
        moment += GRACE + TICK
    if case == "the next one is used":
        moment = start + _after_grace()
        newest = sessions.refresh(token=newest.refresh, now=start + GRACE)

    with pytest.raises(RefreshTokenReused):
        sessions.refresh(token=token, now=moment)
    _assert_ended(SignInSession.Reason.TOKEN_REUSED)
    assert "refresh token used twice" in caplog.text
    assert token not in caplog.text
    with pytest.raises(SessionEnded):
        sessions.refresh(token=newest.refresh, now=moment)


def test_a_repeat_that_the_node_cannot_check_is_not_counted(token: str, chain: FakeChain) -> None:
    start = now()
    sessions.refresh(token=token, now=start)
    with chain.away(), pytest.raises(NodeUnavailable):
        sessions.refresh(token=token, now=start + timedelta(minutes=1))

    sessions.refresh(token=token, now=start + timedelta(minutes=2))


def test_reuse_is_found_while_the_node_is_away(token: str, chain: FakeChain) -> None:
    start = now()
    sessions.refresh(token=token, now=start)

    with chain.away(), pytest.raises(RefreshTokenReused):
        sessions.refresh(token=token, now=start + REPEATABLE + TICK)
    _assert_ended(SignInSession.Reason.TOKEN_REUSED)


def test_a_token_that_was_never_issued_is_unknown(token: str) -> None:
    with pytest.raises(RefreshTokenUnknown):
        sessions.refresh(token="rt_" + secrets.token_urlsafe(32), now=now())
    _assert_untouched()


def test_without_a_node_nothing_is_refreshed_and_the_token_stays_valid(token: str, chain: FakeChain) -> None:
    with chain.away(), pytest.raises(NodeUnavailable):
        sessions.refresh(token=token, now=now())
    _assert_untouched()
    sessions.refresh(token=token, now=now())


def test_a_controller_that_lost_sign_loses_the_session(
    token: str, profile: Profile, chain: FakeChain
) -> None:
    chain.set_permissions(profile, profile.controller.address, ALL_PERMISSIONS & ~Permission.SIGN)

    with pytest.raises(ControllerRevoked):
        sessions.refresh(token=token, now=now())
    _assert_ended(SignInSession.Reason.CONTROLLER_REVOKED)
    assert RefreshToken.objects.get().used_at is None


def test_a_session_does_not_outlive_the_key_manager_that_vouched_for_it(
    token: str, profile: Profile, chain: FakeChain
) -> None:
    other = chain.create_profile()
    chain.set_owner(profile, other.key_manager_address)

    with pytest.raises(ControllerRevoked):
        sessions.refresh(token=token, now=now())
    _assert_ended(SignInSession.Reason.CONTROLLER_REVOKED)
    assert RefreshToken.objects.get().used_at is None


def test_a_session_outlives_a_move_to_another_vetted_key_manager_of_its_own(
    token: str, profile: Profile, chain: FakeChain
) -> None:
    chain.set_owner(profile, chain.deploy_stray_key_manager(profile.profile_address))

    assert sessions.refresh(token=token, now=now()).refresh != token


def test_a_closed_account_gets_no_tokens(token: str) -> None:
    User.objects.update(is_active=False)

    with pytest.raises(AccountInactive):
        sessions.refresh(token=token, now=now())
    _assert_untouched()


def test_a_session_that_ends_during_the_node_request_yields_no_token(
    token: str, chain: FakeChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = chain.read_key_manager

    def signed_out_meanwhile(**arguments: Any) -> KeyManagerState:
        sessions.end(session_id=SignInSession.objects.get().pk, reason=SignInSession.Reason.STAFF, now=now())
        return read(**arguments)

    monkeypatch.setattr(chain, "read_key_manager", signed_out_meanwhile)

    with pytest.raises(SessionEnded):
        sessions.refresh(token=token, now=now())
    assert RefreshToken.objects.get().used_at is None


def test_a_token_already_used_before_the_lock_was_taken_ends_the_session(
    token: str, chain: FakeChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, read = now(), chain.read_key_manager

    def used_meanwhile(**arguments: Any) -> KeyManagerState:
        monkeypatch.setattr(chain, "read_key_manager", read)
        sessions.refresh(token=token, now=start)
        return read(**arguments)

    monkeypatch.setattr(chain, "read_key_manager", used_meanwhile)

    with pytest.raises(RefreshTokenReused):
        sessions.refresh(token=token, now=start + REPEATABLE + TICK)
    _assert_ended(SignInSession.Reason.TOKEN_REUSED)


def test_a_repeat_while_the_next_token_is_used_ends_the_session(
    token: str, chain: FakeChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, read = now(), chain.read_key_manager
    child = sessions.refresh(token=token, now=start).refresh

    def used_meanwhile(**arguments: Any) -> KeyManagerState:
        monkeypatch.setattr(chain, "read_key_manager", read)
        sessions.refresh(token=child, now=start)
        return read(**arguments)

    monkeypatch.setattr(chain, "read_key_manager", used_meanwhile)

    with pytest.raises(RefreshTokenReused):
        sessions.refresh(token=token, now=start + GRACE + TICK)
    _assert_ended(SignInSession.Reason.TOKEN_REUSED)


def test_no_token_is_stored_in_clear(token: str) -> None:
    moment: datetime = now()
    child = sessions.refresh(token=token, now=moment).refresh

    stored = " ".join(RefreshToken.objects.values_list("token_hash", flat=True))
    assert token not in stored
    assert child not in stored
    assert len(stored.split()) == 2
