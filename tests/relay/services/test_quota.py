"""Reading the quota with a controller's signature, in every form that wallets sign."""

import random
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from credits.services.reconciliation import find_differences
from devstack.world.permissions import Permission
from devstack.world.profiles import ControllerPlan, Profile
from gateway.chain.errors import NodeUnavailable, UnusableSignature
from relay.errors import NotYourProfile, QuotaSignatureInvalid, TimestampOutOfWindow
from relay.services.accepting.calls import Caller
from relay.services.accepting.quota import Quota, check_timestamp, quota_of, read_quota
from tests.credits.allowances import set_allowance
from tests.factories import UserFactory, random_address
from tests.relay.chain import FaultyClient, node_away
from tests.relay.conftest import Accept, Settle
from tests.relay.signing import QUOTA_DIALECTS, sign_digest
from tests.relay.workers import later
from users.errors import SignPermissionMissing
from users.models import User

pytestmark = pytest.mark.django_db
Read = Callable[..., Quota]


@pytest.fixture
def read(user: User, profile: Profile) -> Read:
    """Return a function that reads the quota, signed by the profile's controller, with changes."""
    caller = Caller(user.pk, str(user.profile_address))

    def run(
        *,
        address: str = profile.profile_address,
        seconds: int = 0,
        dialect: str = "personal message of the hash",
        private_key: str = profile.controller.private_key,
        signature: bytes | None = None,
        now: datetime | None = None,
    ) -> Quota:
        now = now or timezone.now()
        timestamp = int(now.timestamp()) + seconds
        signed = QUOTA_DIALECTS[dialect](address, timestamp, private_key) if signature is None else signature
        return read_quota(caller=caller, address=address, timestamp=timestamp, signature=signed, now=now)

    return run


@pytest.mark.parametrize("dialect", QUOTA_DIALECTS)
def test_every_form_of_the_message_is_accepted(read: Read, node: FaultyClient, dialect: str) -> None:
    assert read(dialect=dialect) == Quota(available=10_000, total=0, reset_date=-1)
    assert node.requests == 1


@pytest.mark.parametrize(("seconds", "microsecond"), [(-5, 0), (-5, 999_999), (0, 0), (5, 0), (5, 999_999)])
def test_a_clock_difference_of_five_seconds_is_accepted(seconds: int, microsecond: int) -> None:
    now = timezone.now().replace(microsecond=microsecond)
    check_timestamp(timestamp=int(now.timestamp()) + seconds, now=now)


@pytest.mark.parametrize(
    ("seconds", "microsecond", "hint"),
    [
        (-6, 0, "-6 s"),
        (-6, 999_999, "-6 s"),
        (6, 999_999, "+6 s"),
        (6, 0, "+6 s"),
        (10**9, 0, "+1000000000 s"),
    ],
)
def test_a_second_more_is_refused_with_the_servers_time(seconds: int, microsecond: int, hint: str) -> None:
    now = timezone.now().replace(microsecond=microsecond)
    with pytest.raises(TimestampOutOfWindow) as refusal:
        check_timestamp(timestamp=int(now.timestamp()) + seconds, now=now)
    assert (refusal.value.status, refusal.value.members) == (401, {"serverTime": int(now.timestamp())})
    assert hint in refusal.value.detail
    assert "milliseconds" not in refusal.value.detail


@pytest.mark.parametrize("timestamp", [1_795_255_737_000, 10**11, 2**63 - 1])
def test_the_error_for_milliseconds_names_the_unit(timestamp: int) -> None:
    with pytest.raises(TimestampOutOfWindow, match=r"Send seconds, not milliseconds\."):
        check_timestamp(timestamp=timestamp, now=timezone.now())


def test_the_quota_of_another_profile_is_refused(
    read: Read, create_profile: Callable[..., Profile], user: User
) -> None:
    other = create_profile()
    with pytest.raises(NotYourProfile) as refusal:
        read(address=other.profile_address, private_key=other.controller.private_key)
    assert (refusal.value.status, refusal.value.members) == (403, {"profile": user.profile_address})


def test_a_signature_for_another_second_or_address_is_invalid(read: Read, profile: Profile) -> None:
    key, now = profile.controller.private_key, timezone.now()
    sign = random.choice(list(QUOTA_DIALECTS.values()))
    for address, timestamp in (
        (profile.profile_address, int(now.timestamp()) + 1),
        (random_address(), int(now.timestamp())),
    ):
        with pytest.raises(QuotaSignatureInvalid) as refusal:
            read(signature=sign(address, timestamp, key), now=now)
        assert refusal.value.status == 401


def test_a_signature_of_another_key_is_invalid(read: Read) -> None:
    with pytest.raises(QuotaSignatureInvalid):
        read(private_key="0x" + secrets.token_hex(32))


def test_a_malformed_signature_is_refused_as_unusable(read: Read, profile: Profile) -> None:
    signature = sign_digest(profile.controller.private_key, secrets.token_bytes(32))
    with pytest.raises(UnusableSignature):
        read(signature=signature[:64] + b"\x05")


def test_a_controller_without_sign_may_not_read(
    create_profile: Callable[..., Profile], open_account: Callable[..., User]
) -> None:
    everything_else = Permission(0x7F3F7F) & ~Permission.SIGN
    made = create_profile(ControllerPlan(everything_else), ControllerPlan(Permission.SIGN))
    user, now = open_account(made), timezone.now()
    timestamp = int(now.timestamp())
    without, with_sign = (
        QUOTA_DIALECTS["the bare hash"](made.profile_address, timestamp, controller.private_key)
        for controller in made.controllers
    )
    arguments = {
        "caller": Caller(user.pk, made.profile_address),
        "address": made.profile_address,
        "timestamp": timestamp,
        "now": now,
    }
    with pytest.raises(SignPermissionMissing) as refusal:
        read_quota(signature=without, **arguments)  # type: ignore[arg-type]
    assert (refusal.value.status, refusal.value.members) == (403, {"controller": made.controllers[0].address})
    # SIGN is enough; it needs no permission to relay.
    assert read_quota(signature=with_sign, **arguments).available == 10_000  # type: ignore[arg-type]


def test_without_a_node_no_signature_is_accepted(read: Read) -> None:
    with pytest.raises(NodeUnavailable), node_away():
        read()


def test_held_credits_are_not_available(read: Read, accept: Accept, settle: Settle) -> None:
    row = accept()
    assert read().available == 10_000 - row.hold.amount
    settle()
    row.refresh_from_db()
    assert read().available == 10_000 - row.real_cost
    assert find_differences() == []


def test_a_subscriber_sees_the_period_and_its_end(read: Read, user: User) -> None:
    paid, end = random.randint(1, 10**6), later(random.randint(60, 10**6)).replace(microsecond=0)
    set_allowance(user=user, credits=paid, starts_at=end - timedelta(days=31), ends_at=end, renews=False)
    assert read() == Quota(available=10_000, total=paid, reset_date=int(end.timestamp()))
    assert quota_of(user_id=user.pk, now=end) == Quota(available=10_000, total=0, reset_date=-1)


def test_a_user_without_an_account_has_nothing() -> None:
    assert quota_of(user_id=UserFactory.create().pk, now=datetime.now(UTC)) == Quota(0, 0, -1)
