"""Quotes: a call that is handed in with one never costs more, and what that costs the service is in its budget."""

import os
import random
import secrets
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings as configured
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from credits.models import CreditEntry
from credits.queries import balance_of
from credits.services import reconciliation as ledger
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from devstack.world.test_contracts import Flaky, deploy_flaky
from gateway.chain.fees import FeesTooHigh
from relay.errors import (
    QuoteExpired,
    QuoteForOtherCall,
    QuoteNotFound,
    QuoteOutdated,
    QuoteUsed,
    RelayPaused,
)
from relay.models import Attempt, Loss, Quote, RelayTransaction
from relay.services.fleet import losses
from relay.services.sending import broadcasting
from relay.services.settling import reconciliation
from tests.database import as_owner
from tests.factories import UserFactory
from tests.relay.chain import GWEI, Chain, FaultyClient
from tests.relay.conftest import Refused, Settle
from tests.relay.quoting import execute_prepared, prepare
from tests.relay.services.test_query_counts import OF_EXECUTE
from tests.relay.signing import execute_payload
from tests.relay.workers import broadcast_all, later, track
from users.models import TrustedImplementation, User

pytestmark = pytest.mark.django_db
QUOTES = int(os.environ.get("QUOTES", "20"))


@pytest.fixture
def calm(chain: Chain, node: FaultyClient) -> Chain:
    """A chain whose base fee is one gwei, and a client that asks for it each time."""
    chain.set_base_fee(GWEI)
    return chain


def spent_wei(row: RelayTransaction) -> int:
    """Return what the relayer paid for the call."""
    mined = row.attempts.get(status=Attempt.Status.MINED)
    return int(mined.gas_used or 0) * int(mined.effective_gas_price_wei or 0)


class TestGiving:
    def test_a_quote_equals_the_hold_and_reserves_the_fee_increase_of_a_minute(
        self, user: User, profile: Profile, calm: Chain
    ) -> None:
        prepared = prepare(user, profile)
        quote = Quote.objects.get()
        assert prepared.quote == quote
        assert quote.credits == prepared.highest_cost
        # Seven blocks of 12 s let the base fee rise by 9/8 each: 2.28 gwei, of which a call offers twice as much.
        assert 2 * 1.2 * GWEI < quote.max_fee_per_gas_wei - 3 * GWEI < 2 * 1.3 * GWEI
        loss = Loss.objects.get()
        assert (loss.kind, loss.key, loss.user_id) == (Loss.Kind.QUOTE, f"quote:{quote.pk}", user.pk)
        assert loss.reserved_wei == quote.gas_limit * quote.max_fee_per_gas_wei - quote.credits * 10**12
        assert balance_of(user).held == 0

    def test_without_budget_there_is_no_quote_until_others_have_expired(
        self, user: User, profile: Profile, settings: Settings
    ) -> None:
        assert prepare(user, profile).quote is not None
        reserved = Loss.objects.get()
        # Quotes get half of the service's budget.
        settings.RELAY_LOSS_PER_HOUR_WEI = int(reserved.reserved_wei) * 3
        prepared = prepare(user, profile)
        assert prepared.quote is None
        assert prepared.quote_refusal is not None
        assert (prepared.quote_refusal.code, prepared.refusals) == ("quote-unavailable", ())
        assert list(Loss.objects.all()) == [reserved]
        losses.settle_ended(now=later(configured.RELAY_QUOTE_SECONDS))
        assert prepare(user, profile).quote is None
        losses.settle_ended(now=later(configured.RELAY_QUOTE_SECONDS + 16))
        assert not Quote.objects.exists()
        assert not Loss.objects.exists()
        assert prepare(user, profile).quote is not None

    def test_a_call_that_would_be_refused_gets_none(
        self, open_account: Callable[..., User], profile: Profile
    ) -> None:
        prepared = prepare(open_account(profile, credits=10), profile)
        assert [refusal.code for refusal in prepared.refusals] == ["insufficient-credits"]
        assert (prepared.quote, prepared.quote_refusal) == (None, None)
        assert not Loss.objects.exists()


class TestUsing:
    def test_a_call_with_a_quote_takes_no_statement_more(
        self, user: User, profile: Profile, django_assert_num_queries: DjangoAssertNumQueries
    ) -> None:
        prepared = prepare(user, profile)
        with django_assert_num_queries(OF_EXECUTE + 1):  # one to read the row
            row = execute_prepared(user, profile, prepared)
        assert row.quoted_cost == prepared.highest_cost
        assert Loss.objects.get().key == row.hold.key
        # A repeat after a lost response gets the same one.
        assert execute_prepared(user, profile, prepared) == row

    def test_a_higher_gas_price_costs_the_service_and_not_the_user(
        self, user: User, profile: Profile, calm: Chain, settle: Settle, settings: Settings
    ) -> None:
        settings.RELAY_USER_LOSS_PER_HOUR_WEI = 10**16
        prepared, start = prepare(user, profile), timezone.now()
        assert prepared.quote is not None
        calm.set_base_fee(2 * GWEI)
        row = execute_prepared(user, profile, prepared)
        assert row.hold.amount == prepared.quote.credits
        broadcast_all(now=start)
        first = row.attempts.get()
        assert first.max_fee_per_gas_wei > 3 * GWEI
        # The account could pay for more, and need not.
        calm.drop_pool()
        calm.set_base_fee(first.max_fee_per_gas_wei + GWEI)
        track(now=start + timedelta(seconds=configured.RELAY_REPLACE_SECONDS + 1))
        assert row.attempts.count() == 2
        row.hold.refresh_from_db()
        assert row.hold.amount == prepared.quote.credits
        assert settle() == 1
        row.refresh_from_db()
        loss = Loss.objects.get()
        assert row.status == "Success"
        assert 10_000 - balance_of(user).balance == prepared.quote.credits
        assert loss.lost_wei == spent_wei(row) - prepared.quote.credits * 10**12 > 0
        # Mined again at another price after a reorganisation, it still costs no more.
        calm.reorganise(configured.CONFIRMATIONS)
        track()
        row.refresh_from_db()
        assert (row.status, Loss.objects.get().lost_wei) == ("Submitted", None)
        calm.set_base_fee(first.max_fee_per_gas_wei + 2 * GWEI)
        broadcasting.resend(now=timezone.now())
        assert settle() == 1
        row.refresh_from_db()
        assert (row.status, 10_000 - balance_of(user).balance) == ("Success", prepared.quote.credits)
        assert Loss.objects.get().lost_wei == spent_wei(row) - prepared.quote.credits * 10**12
        assert ledger.find_differences() == []
        assert reconciliation.find_differences(since=start) == []

    def test_a_signed_transaction_stays_within_its_reservation(
        self, user: User, profile: Profile, calm: Chain
    ) -> None:
        prepared = prepare(user, profile)
        # Higher than a minute can raise it, and still worth signing.
        calm.set_base_fee(4 * GWEI)
        attempt = execute_prepared(user, profile, prepared).attempts.get()
        assert prepared.quote is not None
        assert attempt.max_fee_per_gas_wei == prepared.quote.max_fee_per_gas_wei
        excess_wei = attempt.worst_cost_wei - prepared.quote.credits * 10**12
        assert Loss.objects.get().reserved_wei == excess_wei

    def test_a_fall_of_the_base_fee_is_the_users(
        self, user: User, profile: Profile, calm: Chain, settle: Settle
    ) -> None:
        prepared = prepare(user, profile)
        calm.set_base_fee(GWEI // 2)
        row = execute_prepared(user, profile, prepared)
        assert prepared.expected_cost is not None
        assert settle() == 1
        row.refresh_from_db()
        assert 10_000 - balance_of(user).balance == -(-spent_wei(row) // 10**12) < prepared.expected_cost
        assert Loss.objects.get().lost_wei == 0


class TestMisuse:
    def test_a_quote_is_valid_once_for_its_call_owner_and_time(
        self, user: User, profile: Profile, refused: Refused, calm: Chain, node: FaultyClient
    ) -> None:
        quoted, other = prepare(user, profile), prepare(user, profile)
        assert quoted.quote is not None
        with refused(QuoteForOtherCall):
            execute_prepared(user, profile, other, quote=quoted.quote)
        with refused(QuoteNotFound):
            execute_prepared(user, profile, quoted, quote=Quote())
        with refused(QuoteExpired):
            execute_prepared(user, profile, quoted, now=quoted.quote.expires_at)
        as_owner("UPDATE relay_quote SET user_id = %s", UserFactory.create().pk)
        with refused(QuoteNotFound):
            execute_prepared(user, profile, quoted)
        as_owner("UPDATE relay_quote SET user_id = %s", user.pk)
        calm.set_base_fee(12 * GWEI)
        with refused(FeesTooHigh):
            execute_prepared(user, profile, quoted)
        calm.set_base_fee(GWEI)
        # Used by another process after this one has read it.
        node.meanwhile("read_relay_states", lambda: Quote.objects.update(used_at=timezone.now()))
        with pytest.raises(QuoteUsed):
            execute_prepared(user, profile, quoted)
        assert balance_of(user).held == 0
        assert not RelayTransaction.objects.exists()
        with refused(QuoteUsed):
            execute_prepared(user, profile, quoted)

    def test_a_call_that_needs_more_gas_than_quoted_is_refused(
        self, user: User, profile: Profile, refused: Refused
    ) -> None:
        prepared = prepare(user, profile)
        Quote.objects.update(gas_limit=50_000)
        with refused(QuoteOutdated) as refusal:
            execute_prepared(user, profile, prepared)
        assert refusal.value.members["quotedGasLimit"] == 50_000

    def test_a_quote_stays_valid_after_its_code_lost_trust_and_the_loss_budget_is_used_up(
        self, user: User, profile: Profile, refused: Refused, settings: Settings
    ) -> None:
        settings.CHAIN_TRUST = "open"
        prepared = prepare(user, profile)
        Loss.objects.update(reserved_wei=1)
        TrustedImplementation.objects.update(is_active=False)
        settings.RELAY_USER_LOSS_PER_HOUR_WEI = 1
        # Neither is the quote used, nor is its reservation under the key of a call.
        with refused(RelayPaused):
            execute_prepared(user, profile, prepared)
        settings.RELAY_USER_LOSS_PER_HOUR_WEI = 10**18
        assert execute_prepared(user, profile, prepared).quoted_cost == prepared.highest_cost


def test_many_quotes_through_a_spike_and_reverts(
    open_account: Callable[..., User],
    profile: Profile,
    services: Services,
    calm: Chain,
    settings: Settings,
    settle: Settle,
) -> None:
    """QUOTES=1000 makes it a thousand; no user pays more than quoted, and the service's loss is within its budget."""
    settings.RELAY_USER_SHARE_PERCENT = 100
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = settings.RELAY_CANCELLED_CALLS_PER_DAY = 10**6
    settings.RELAY_USER_LOSS_PER_HOUR_WEI = 10**16
    user = open_account(profile, credits=10**7)
    flaky = deploy_flaky(services.world.deployer)
    figures: Counter[str] = Counter()
    while figures["calls"] < QUOTES:
        rows = _round_of_quotes(user, profile, calm, flaky, settle, figures)
        for row in rows:
            row.refresh_from_db()
            paid = -CreditEntry.objects.get(hold__relay_transaction=row).amount
            assert row.quoted_cost is not None
            assert paid <= row.quoted_cost
            lost_wei = max(0, spent_wei(row) - paid * 10**12)
            assert Loss.objects.get(key=row.hold.key).lost_wei == lost_wei
            figures.update([row.status, "calls", *["at a loss"] * bool(lost_wei)])
            figures["lost wei"] += lost_wei
        # An hour passes.
        Loss.objects.filter(settled_at__isnull=False).update(settled_at=timezone.now() - timedelta(hours=2))
    assert figures["Success"] + figures["Failed"] == figures["calls"]
    assert figures["Failed"]
    assert figures["at a loss"]


def _round_of_quotes(
    user: User, profile: Profile, calm: Chain, flaky: Flaky, settle: Settle, figures: Counter[str]
) -> list[RelayTransaction]:
    """Have ten calls quoted and accepted, some of which will revert; raise the base fee tenfold, and settle them."""
    calm.set_base_fee(GWEI)
    start, prepared = timezone.now(), []
    for place in range(10):
        payload = None if place % 3 else execute_payload(flaky.address, data=secrets.token_bytes(8))
        prepared.append(prepare(user, profile, payload=payload, channel=secrets.randbits(120)))
    figures["refused"] += sum(one.quote is None for one in prepared)
    calm.set_base_fee(random.randint(GWEI, 2 * GWEI))
    rows = [execute_prepared(user, profile, one) for one in prepared if one.quote]
    if random.random() < 0.5:
        broadcast_all(now=start)
    calm.drop_pool()
    flaky.flip()
    calm.set_base_fee(10 * GWEI)
    broadcast_all(now=start)
    track(now=start + timedelta(seconds=configured.RELAY_REPLACE_SECONDS + 1))
    usage = losses.usage(now=timezone.now())
    assert usage.lost_wei + usage.reserved_wei <= usage.limit_wei * 3 // 4
    for base_fee in (10 * GWEI, GWEI):
        # What the budget did not allow to replace waits for the second.
        calm.set_base_fee(base_fee)
        broadcast_all()
        broadcasting.resend(now=later(configured.RELAY_RESEND_SECONDS + 1))
        settle()
    flaky.flip()
    return rows
