"""What the service may lose: reserved when signed, corrected when the chain has decided, never above the limits."""

import random
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings

from credits.errors import InsufficientCredits
from credits.services import entries
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.types import SendKind
from relay.errors import LossLimitReached, RelayPaused
from relay.models import Loss, RelayTransaction
from relay.services.fleet import losses
from relay.services.sending import cancellation
from rewards.models import Badge
from tests.factories import UserFactory
from tests.relay.callers import execute
from tests.relay.chain import Chain, FaultyClient
from tests.relay.conftest import Accept, Refused
from tests.relay.signing import sign_call, window
from tests.relay.workers import broadcast_all, later, track
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db
REPLACEMENT, CANCELLATION = Loss.Kind.REPLACEMENT, Loss.Kind.CANCELLATION


@pytest.fixture
def limits(settings: Settings) -> None:
    """A service that may lose 400 wei in an hour, 300 of them for other things than self-transfers; a user 100."""
    settings.RELAY_LOSS_PER_HOUR_WEI, settings.RELAY_USER_LOSS_PER_HOUR_WEI = 400, 100


@pytest.fixture
def people(db: None) -> list[int]:
    """The ids of some users."""
    return [UserFactory.create().pk for _ in range(5)]


def reserve(
    wei: int,
    *,
    user_id: int | None,
    key: str = "",
    kind: Loss.Kind = REPLACEMENT,
    now: datetime | None = None,
) -> bool:
    return losses.reserve(
        key=key or secrets.token_hex(8), user_id=user_id, amount_wei=wei, kind=kind, now=now or timezone.now()
    )


@pytest.mark.usefixtures("limits")
class TestLimits:
    def test_a_user_and_the_service_have_limits_of_their_own(self, people: list[int]) -> None:
        one, *others = people
        assert reserve(60, user_id=one)
        assert not reserve(41, user_id=one)
        assert reserve(40, user_id=one)
        assert [reserve(100, user_id=user_id) for user_id in others] == [True, True, False, False]
        usage = losses.usage(now=timezone.now())
        assert (usage.lost_wei, usage.reserved_wei, usage.limit_wei, usage.is_used_up) == (0, 300, 400, True)

    def test_a_quarter_is_kept_for_self_transfers_which_no_limit_of_a_user_stops(
        self, people: list[int]
    ) -> None:
        for user_id in people[:3]:
            assert reserve(100, user_id=user_id)
        assert not reserve(1, user_id=people[3])
        assert reserve(60, user_id=people[0], kind=CANCELLATION)
        assert reserve(40, user_id=None, kind=Loss.Kind.GAP)
        assert not reserve(1, user_id=None, kind=Loss.Kind.GAP)

    def test_a_repeat_raises_the_reservation_and_never_adds_to_it(self, people: list[int]) -> None:
        for wei, is_reserved, reserved in ((50, True, 50), (30, True, 50), (90, True, 90), (101, False, 90)):
            assert reserve(wei, user_id=people[0], key="one") is is_reserved
            assert Loss.objects.get().reserved_wei == reserved

    def test_losses_count_for_an_hour_and_other_calls_do_not(self, people: list[int]) -> None:
        user_id, start = people[0], timezone.now()
        assert reserve(100, user_id=user_id, key="one", now=start)
        losses.settle(key="one", lost_wei=30, now=start)
        losses.settle(key="one", lost_wei=99, now=start)
        assert reserve(70, user_id=user_id, key="two", now=start)
        losses.settle(key="two", lost_wei=0, now=start)
        last_moment, over = start + timedelta(minutes=59, seconds=59), start + timedelta(hours=1)
        assert not reserve(71, user_id=user_id, now=last_moment)
        assert reserve(100, user_id=user_id, now=over)

    def test_calls_in_flight_count_at_any_age(self, people: list[int]) -> None:
        assert reserve(100, user_id=people[0], now=later(-7200))
        assert not reserve(1, user_id=people[0])

    def test_losses_on_another_chain_count_there(self, people: list[int]) -> None:
        assert reserve(100, user_id=people[0], key="one")
        Loss.objects.update(chain_id=1, reserved_wei=10**6)
        assert reserve(100, user_id=people[0], key="one")
        assert losses.usage(now=timezone.now()).reserved_wei == 100
        assert Loss.objects.count() == 2

    def test_ten_users_are_listed(self, people: list[int]) -> None:
        people += [UserFactory.create().pk for _ in range(6)]
        for user_id in people:
            assert reserve(1, user_id=user_id, key=str(user_id))
        assert [row.user_id for row in losses.biggest_users(since=later(0))] == people[:10]

    def test_a_transaction_that_fails_reserves_nothing(self, people: list[int]) -> None:
        with transaction.atomic():
            assert reserve(100, user_id=people[0])
            transaction.set_rollback(True)
        assert reserve(100, user_id=people[0])

    def test_the_biggest_users_are_listed_first(self, people: list[int]) -> None:
        for wei, user_id in enumerate(people, start=1):
            assert reserve(wei, user_id=user_id, key=str(user_id))
        losses.settle(key=str(people[4]), lost_wei=1, now=timezone.now())
        biggest = losses.biggest_users(since=later(-3600))
        assert [(row.user_id, row.lost_wei, row.reserved_wei) for row in biggest] == [
            (people[3], 0, 4),
            (people[2], 0, 3),
            (people[1], 0, 2),
            (people[0], 0, 1),
            (people[4], 1, 0),
        ]


@pytest.mark.usefixtures("limits")
@pytest.mark.django_db(transaction=True)
def test_concurrent_transactions_reserve_no_more_than_the_limits(people: list[int]) -> None:
    wishes = [partial(reserve, 15, user_id=user_id) for user_id in people for _ in range(8)]
    random.shuffle(wishes)
    results = at_once(wishes)
    assert sum(result is True for result in results) == Loss.objects.count() == 20
    for user_id in people:
        assert Loss.objects.filter(user_id=user_id).count() <= 6


def test_a_cancellation_is_reserved_at_its_fee_cap_and_settled_at_its_gas(
    accept: Accept, chain: Chain, settle: Callable[[], int]
) -> None:
    row = accept(validity=window(0, int(timezone.now().timestamp()) + 100))
    broadcast_all(now=later(101))
    newest, reserved = row.attempts.latest("sequence"), Loss.objects.get()
    assert (reserved.kind, reserved.user_id, reserved.key) == ("cancellation", row.user_id, row.hold.key)
    assert reserved.reserved_wei == newest.worst_cost_wei > 0
    assert (reserved.lost_wei, reserved.settled_at) == (None, None)

    assert settle() == 1
    newest.refresh_from_db()
    reserved.refresh_from_db()
    assert reserved.lost_wei == 21_000 * int(newest.effective_gas_price_wei or 0) < reserved.reserved_wei
    assert losses.usage(now=timezone.now()).reserved_wei == 0


def test_a_call_that_overtakes_its_cancellation_costs_the_service_nothing(
    accept: Accept, chain: Chain
) -> None:
    row = accept(validity=window(0, int(timezone.now().timestamp()) + 100))
    broadcast_all()
    track(now=later(101))
    assert Loss.objects.get().lost_wei is None
    # The self-transfer is signed, and never sent.
    chain.mine(2)
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, Loss.objects.get().lost_wei) == ("Success", 0)


def test_without_a_budget_nothing_is_cancelled_and_with_one_it_is(
    accept: Accept, settings: Settings, chain: Chain, settle: Callable[[], int]
) -> None:
    settings.RELAY_LOSS_PER_HOUR_WEI = 0
    row = accept(validity=window(0, int(timezone.now().timestamp()) + 100))
    other = accept(channel=secrets.randbits(100))
    for _ in range(2):
        broadcast_all(now=later(101))
    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.terminal_status, row.attempts.count()) == ("", 1)
    # Calls that cost the service nothing are still accepted.
    assert other.status == "Submitted"

    settings.RELAY_LOSS_PER_HOUR_WEI = 10**16
    broadcast_all(now=later(101))
    broadcast_all(now=later(101))
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 2
    row.refresh_from_db()
    assert row.status == "Expired"


def test_staff_are_notified_that_the_loss_budget_is_used_up(
    accept: Accept, settings: Settings, chain: Chain
) -> None:
    settings.RELAY_LOSS_PER_HOUR_WEI = 0
    row = accept()
    with pytest.raises(LossLimitReached):
        cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    row.refresh_from_db()
    assert (row.terminal_status, row.attempts.count()) == ("", 1)


def test_a_bumped_cancellation_needs_a_budget_too(
    accept: Accept, settings: Settings, node: FaultyClient
) -> None:
    row = accept()
    node.answer_next(SendKind.REFUSED)
    broadcast_all()
    newest = row.attempts.latest("sequence")
    assert newest.kind == "cancellation"
    settings.RELAY_LOSS_PER_HOUR_WEI = newest.worst_cost_wei
    node.answer_next(SendKind.UNDERPRICED)
    broadcast_all()
    assert row.attempts.count() == 2
    settings.RELAY_LOSS_PER_HOUR_WEI = 2 * newest.worst_cost_wei
    node.answer_next(SendKind.UNDERPRICED)
    broadcast_all()
    assert row.attempts.count() == 3
    assert Loss.objects.get().reserved_wei == row.attempts.latest("sequence").worst_cost_wei


class TestUnvettedCode:
    @pytest.fixture
    def untrusted(self, services: Services, chain: Chain, settings: Settings) -> Profile:
        """A profile of untrusted code, which the service still relays for."""
        settings.CHAIN_TRUST = "open"
        return services.world.deploy_untrusted_profile()

    def test_its_calls_reserve_a_self_transfer_while_they_are_in_flight(
        self,
        untrusted: Profile,
        services: Services,
        open_account: Callable[..., User],
        settle: Callable[[], int],
        settings: Settings,
    ) -> None:
        user = open_account(untrusted)
        execute(user=user, call=sign_call(services=services, profile=untrusted), now=timezone.now())
        row, reserved = RelayTransaction.objects.get(), Loss.objects.get()
        assert (reserved.kind, reserved.key, reserved.user_id) == ("untrusted", row.hold.key, user.pk)
        assert reserved.reserved_wei == 21_000 * settings.RELAY_FEE_CAP_WEI
        assert settle() == 1
        reserved.refresh_from_db()
        assert reserved.lost_wei == 0

    def test_once_the_budget_is_used_up_they_are_refused_and_those_of_vetted_code_are_not(
        self,
        untrusted: Profile,
        services: Services,
        open_account: Callable[..., User],
        accept: Accept,
        refused: Refused,
        settings: Settings,
    ) -> None:
        settings.RELAY_LOSS_PER_HOUR_WEI = 21_000 * settings.RELAY_FEE_CAP_WEI
        user, call = open_account(untrusted), sign_call(services=services, profile=untrusted)
        refusal = refused.call(RelayPaused, user, call)
        assert (refusal.status, bool(refusal.retry_after)) == (503, True)
        assert not Loss.objects.exists()
        assert accept().status == "Pending"

    def test_they_are_lent_nothing(
        self,
        untrusted: Profile,
        services: Services,
        open_account: Callable[..., User],
        refused: Refused,
        user: User,
        accept: Accept,
    ) -> None:
        Badge.objects.update(acceptable_credit_debt=10**6)
        for owner in (poor := open_account(untrusted), user):
            entries.adjust(
                user=owner, credits=-10_000, key=secrets.token_hex(8), actor=None, reason="nothing left"
            )
        with refused(InsufficientCredits) as refusal:
            call = sign_call(services=services, profile=untrusted)
            execute(user=poor, call=call, now=timezone.now())
        assert refusal.value.members["debtLimit"] == 0
        assert accept().status == "Pending"
