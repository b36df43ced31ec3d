"""Prices of a credit: each call keeps its own, whatever the price is later."""

import random

import pytest
from django.conf import settings as configured
from django.db import IntegrityError, ProgrammingError, transaction
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditEntry
from credits.services.causes import find_differences as find_causes
from credits.services.reconciliation import find_differences
from devstack.world.profiles import Profile
from gateway.chain.config import get_chain, on_chain
from relay import checks
from relay.models import Attempt, CreditPrice, Loss, Quote, RelayTransaction
from relay.queries.prices import current_price, current_prices
from relay.services.fleet import losses
from relay.services.sending import broadcasting
from relay.services.settling import reconciliation
from tests.relay.callers import execute
from tests.relay.chain import GWEI, Chain
from tests.relay.conftest import Accept, Settle
from tests.relay.quoting import execute_prepared, prepare
from tests.relay.two_chains import ForeignChain, settings_of
from tests.relay.workers import broadcast_all, later, track
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def calm(chain: Chain) -> Chain:
    chain.set_base_fee(GWEI)
    return chain


def set_price(credit_wei: int) -> CreditPrice:
    """Put a price of the current chain in force."""
    return CreditPrice.objects.create(chain_id=get_chain().id, credit_wei=credit_wei)


def another_price() -> int:
    """Return a price that is well above or below the first one."""
    return configured.CREDIT_WEI * random.randint(2, 9) // random.choice((1, 20)) + random.randint(1, 99)


def findings_of_prices() -> list[tuple[str, str, dict[str, str]]]:
    """Return what the nightly comparison finds about prices; the credits of the tests have no cause."""
    found = [(one["rule"], one["have"], one["ids"]) for one in find_causes()]
    return [one for one in found if "price" in one[0]]


def cost_of(row: RelayTransaction, price_wei: int) -> int:
    mined = row.attempts.get(status=Attempt.Status.MINED)
    return -(-(mined.gas_used or 0) * int(mined.effective_gas_price_wei or 0) // price_wei)


def worst_of(row: RelayTransaction, price_wei: int) -> int:
    return -(-row.attempts.get(sequence=0).worst_cost_wei // price_wei)


class TestCalls:
    def test_the_first_price_is_that_of_the_setting(self, accept: Accept, settle: Settle) -> None:
        first = CreditPrice.objects.get()
        assert (first.chain_id, first.credit_wei, first.is_first) == (
            configured.CHAIN_ID,
            configured.CREDIT_WEI,
            True,
        )
        row = accept()
        assert row.credit_wei == configured.CREDIT_WEI
        assert row.hold.amount == worst_of(row, configured.CREDIT_WEI)

    def test_a_new_call_is_held_and_charged_at_the_new_price(self, accept: Accept, settle: Settle) -> None:
        price_wei = another_price()
        set_price(price_wei)
        row = accept()
        assert (row.credit_wei, row.hold.amount) == (price_wei, worst_of(row, price_wei))
        assert settle() == 1
        row.refresh_from_db()
        assert row.real_cost == cost_of(row, price_wei)
        assert row.expected_cost <= row.hold.amount

    def test_a_change_in_flight_changes_no_call(self, accept: Accept, settle: Settle, chain: Chain) -> None:
        row = accept()
        set_price(another_price())
        assert settle() == 1
        row.refresh_from_db()
        cost = cost_of(row, configured.CREDIT_WEI)
        assert (row.status, row.real_cost) == ("Success", cost)
        assert -CreditEntry.objects.get(source="RELAY_TRANSACTION").amount == min(cost, row.hold.amount)
        assert find_differences() == []
        assert reconciliation.find_differences(since=later(-3600)) == []
        chain.mine(configured.FINALITY_BLOCKS)
        track()
        assert reconciliation.compare_with_nodes(since=later(-3600)) == ([], 1)

    def test_a_reopened_call_is_settled_at_its_price_again(
        self, accept: Accept, settle: Settle, chain: Chain
    ) -> None:
        row = accept()
        assert settle() == 1
        set_price(another_price())
        chain.reorganise(configured.CONFIRMATIONS)
        track()
        row.refresh_from_db()
        assert (row.status, row.credit_wei) == ("Submitted", configured.CREDIT_WEI)
        broadcasting.resend(now=timezone.now())
        assert settle() == 1
        row.refresh_from_db()
        assert row.real_cost == cost_of(row, configured.CREDIT_WEI)
        assert reconciliation.find_differences(since=later(-3600)) == []

    def test_a_replacement_is_covered_at_the_price_of_the_call(self, accept: Accept, calm: Chain) -> None:
        row = accept()
        first = row.attempts.get()
        set_price(configured.CREDIT_WEI * 9)
        calm.set_base_fee(first.max_fee_per_gas_wei + GWEI)
        broadcast_all()
        newest = row.attempts.latest("sequence")
        assert newest.sequence == 1
        wanted = newest.worst_cost_wei - row.hold.amount * configured.CREDIT_WEI
        assert Loss.objects.get().reserved_wei == wanted > 0

    def test_the_loss_of_a_call_is_computed_at_its_price(
        self, accept: Accept, calm: Chain, settle: Settle, settings: Settings
    ) -> None:
        settings.RELAY_USER_LOSS_PER_HOUR_WEI = 10**16
        row = accept()
        calm.set_base_fee(14 * GWEI)
        broadcast_all()
        set_price(configured.CREDIT_WEI * 9)
        assert settle() == 1
        losses.settle_ended(now=later(0))
        row.hold.refresh_from_db()
        mined = row.attempts.get(status=Attempt.Status.MINED)
        spent_wei = (mined.gas_used or 0) * int(mined.effective_gas_price_wei or 0)
        paid_wei = (row.hold.captured_amount or 0) * configured.CREDIT_WEI
        assert Loss.objects.get().lost_wei == spent_wei - paid_wei > 0


class TestQuotes:
    def test_a_quote_given_before_a_change_keeps_its_price(
        self, user: User, profile: Profile, calm: Chain, settle: Settle
    ) -> None:
        prepared = prepare(user, profile)
        assert prepared.quote is not None
        reserved_wei = Loss.objects.get().reserved_wei
        set_price(configured.CREDIT_WEI * 9)
        row = execute_prepared(user, profile, prepared)
        assert (row.credit_wei, row.quoted_cost) == (configured.CREDIT_WEI, prepared.quote.credits)
        assert row.hold.amount == prepared.quote.credits == worst_of(row, configured.CREDIT_WEI)
        assert Loss.objects.get().reserved_wei == reserved_wei
        assert settle() == 1
        row.refresh_from_db()
        assert row.real_cost == cost_of(row, configured.CREDIT_WEI)

    def test_a_quote_after_a_change_has_the_new_price(
        self, user: User, profile: Profile, calm: Chain
    ) -> None:
        price_wei = another_price()
        set_price(price_wei)
        prepared = prepare(user, profile)
        quote = Quote.objects.get()
        highest_wei = quote.gas_limit * quote.max_fee_per_gas_wei
        assert (prepared.quote, quote.credit_wei) == (quote, price_wei)
        assert prepared.highest_cost == quote.credits
        assert Loss.objects.get().reserved_wei == highest_wei - quote.credits * price_wei


class TestChains:
    def test_each_chain_has_its_own_price_from_its_own_setting(
        self, foreign: ForeignChain, profile: Profile, user: User, accept: Accept
    ) -> None:
        with on_chain(foreign.id):
            assert current_price().is_first
            set_price(price_wei := another_price())
            row = RelayTransaction.objects.get(
                transaction_hash=execute(user=user, call=foreign.sign(profile), now=timezone.now())
            )
        prices = {chain_id: price.credit_wei for chain_id, price in current_prices().items()}
        assert prices == {configured.CHAIN_ID: configured.CREDIT_WEI, foreign.id: price_wei}
        assert accept().credit_wei == configured.CREDIT_WEI
        assert (row.chain_id, row.credit_wei, row.hold.amount) == (
            foreign.id,
            price_wei,
            worst_of(row, price_wei),
        )

    def test_a_chain_that_no_worker_has_seen_has_the_price_of_its_setting(
        self, db: None, settings: Settings
    ) -> None:
        chain_id, price_wei = random.randrange(10**6, 10**9), another_price()
        settings.CHAINS = {chain_id: settings_of(chain_id, credit_wei=price_wei)}
        assert current_prices()[chain_id].credit_wei == price_wei
        assert not CreditPrice.objects.filter(chain_id=chain_id).exists()

    def test_a_later_other_setting_is_an_error_of_check_and_no_price(
        self, foreign: ForeignChain, settings: Settings
    ) -> None:
        assert checks.first_prices() == []
        with on_chain(foreign.id):
            set_price(another_price())
        assert checks.first_prices() == []
        first = settings.CREDIT_WEI
        settings.CREDIT_WEI = first + 1
        settings.CHAINS = {
            foreign.id: settings_of(foreign.id, credit_wei=5, relayer_keys=settings.RELAY_RELAYER_KEYS)
        }
        assert [(one.id, one.msg) for one in checks.first_prices()] == [
            ("relay.E006", f"CREDIT_WEI is {first + 1}, and the chain's first price was {first}."),
            ("relay.E006", f"CHAIN_{foreign.id}_CREDIT_WEI is 5, and the chain's first price was {10**12}."),
        ]
        assert current_price().credit_wei == first

    def test_a_price_without_a_request_and_a_call_at_no_price_of_its_chain_are_found(
        self, accept: Accept
    ) -> None:
        row = accept()
        assert findings_of_prices() == []
        price = set_price(configured.CREDIT_WEI + 7)
        RelayTransaction.objects.update(credit_wei=configured.CREDIT_WEI - 7)
        assert findings_of_prices() == [
            (
                "a call has a price of its chain",
                str(configured.CREDIT_WEI - 7),
                {"relay transaction": str(row.pk)},
            ),
            (
                "a price of a credit was approved",
                f"{price.credit_wei} wei on chain {price.chain_id}",
                {"credit price": str(price.pk)},
            ),
        ]

    def test_a_chain_has_one_first_price_and_no_price_is_changed(self, db: None) -> None:
        first = CreditPrice.objects.get()
        with pytest.raises(IntegrityError), transaction.atomic():
            CreditPrice.objects.create(chain_id=first.chain_id, credit_wei=5, is_first=True)
        with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            CreditPrice.objects.update(credit_wei=5)
        assert list(CreditPrice.objects.all()) == [first]
