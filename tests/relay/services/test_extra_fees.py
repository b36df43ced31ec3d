"""On a chain of the OP stack a call pays for L1 and the operator too: quoted, held, and charged by its receipt."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditHold
from credits.services.reconciliation import find_differences
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.client import set_chain_client
from gateway.chain.errors import SignerUnavailable
from gateway.chain.fees import FeesTooHigh
from gateway.chain.l1_fees import L1Prices
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import ChainView, Head, RelayQuery, RelayState
from gateway.common import db
from relay.models import Attempt, CreditPrice, Loss, Relayer, UnsignedCall
from relay.services.accepting import unsigned
from relay.services.fleet import losses
from relay.services.settling import reconciliation
from signer.client import SignerAway, SignerClient
from tests.relay.callers import execute
from tests.relay.chain import GWEI, Chain, FaultyClient
from tests.relay.conftest import Accept, Refused, Settle
from tests.relay.quoting import execute_prepared, prepare
from tests.relay.workers import later, track
from users.models import User

pytestmark = pytest.mark.django_db


class OpClient(FaultyClient):
    """A node of the OP stack: blocks have L1's prices, and receipts name the fee that a test sets."""

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.l1: L1Prices | None = L1Prices(
            base_fee_wei=random.randint(5, 15) * GWEI,
            blob_base_fee_wei=random.randint(1, GWEI),
            base_fee_scalar=random.randint(10**6, 4 * 10**6),
            blob_base_fee_scalar=random.randint(0, 10**6),
            operator_scalar=random.randint(0, 10**6),
            operator_constant_wei=random.randint(0, GWEI),
        )
        # What the receipts name; without it, the fee at the prices above.
        self.fee_wei: int | None = None
        self.names_fees = True

    def head(self) -> Head:
        return replace(super().head(), l1=self.l1)

    def read_relay_states(self, queries: Sequence[RelayQuery]) -> list[RelayState]:
        states = super().read_relay_states(queries)
        return [replace(state, head=replace(state.head, l1=self.l1)) for state in states]

    def read_chain(self, **arguments: Any) -> ChainView:
        view = super().read_chain(**arguments)
        receipts = {
            name: receipt and replace(receipt, extra_fee_wei=self._fee_of(name, receipt.gas_used))
            for name, receipt in view.receipts.items()
        }
        return replace(view, head=replace(view.head, l1=self.l1), receipts=receipts)

    def _fee_of(self, transaction_hash: str, gas_used: int) -> int | None:
        if not self.names_fees or self.l1 is None:
            return None
        raw = bytes(Attempt.objects.get(transaction_hash=transaction_hash).raw)
        return self.l1.fee_wei(raw, gas_used=gas_used) if self.fee_wei is None else self.fee_wei


@pytest.fixture
def node(services: Services, settings: Settings) -> Iterator[OpClient]:
    """The service's chain client; its chain is one of the OP stack, and its blocks are soon final."""
    settings.CHAIN_FAMILY, settings.FINALITY_BLOCKS = "op-stack", 5
    # No fee that is chosen here uses up what quotes may reserve.
    settings.RELAY_LOSS_PER_HOUR_WEI = settings.RELAY_USER_LOSS_PER_HOUR_WEI = 10**20
    client = OpClient(services)
    set_chain_client(client)
    yield client
    set_chain_client(None)


def _gas_wei(attempt: Attempt) -> int:
    assert attempt.gas_used is not None
    assert attempt.effective_gas_price_wei is not None
    return attempt.gas_used * int(attempt.effective_gas_price_wei)


def _finalise(chain: Chain) -> None:
    chain.mine(django_settings.FINALITY_BLOCKS)
    track()


def _credits(wei: int) -> int:
    return -(-wei // django_settings.CREDIT_WEI)


def test_a_call_pays_what_its_receipt_names_and_at_most_its_quote(
    user: User, profile: Profile, node: OpClient, chain: Chain, settle: Settle
) -> None:
    prepared = prepare(user, profile)
    assert prepared.quote is not None
    row = execute_prepared(user, profile, prepared)
    attempt = row.attempts.get()
    gas_limit_wei = attempt.gas_limit * int(attempt.max_fee_per_gas_wei)
    assert 0 < attempt.max_extra_fee_wei <= prepared.quote.max_extra_fee_wei
    assert attempt.worst_cost_wei == gas_limit_wei + attempt.max_extra_fee_wei
    assert row.hold.amount == prepared.quote.credits == prepared.highest_cost
    assert row.hold.amount == _credits(attempt.worst_cost_wei) > _credits(gas_limit_wei)

    assert settle() == 1

    row.refresh_from_db()
    row.hold.refresh_from_db()
    attempt.refresh_from_db()
    assert node.l1 is not None
    assert attempt.extra_fee_wei == node.l1.fee_wei(bytes(attempt.raw), gas_used=attempt.gas_used or 0)
    cost = _credits(_gas_wei(attempt) + int(attempt.extra_fee_wei))
    assert _credits(_gas_wei(attempt)) < cost <= (prepared.expected_cost or 0) <= prepared.quote.credits
    assert (row.status, row.real_cost, row.hold.captured_amount) == ("Success", cost, cost)
    assert not Loss.objects.exclude(kind=Loss.Kind.QUOTE).exists()
    assert find_differences() == []
    assert reconciliation.find_differences(since=later(-3600)) == []
    _finalise(chain)
    assert reconciliation.compare_with_nodes(since=later(-3600)) == ([], 1)


def test_what_the_fee_exceeds_the_hold_by_is_the_services_loss(
    accept: Accept, node: OpClient, chain: Chain, settle: Settle
) -> None:
    row = accept()
    node.fee_wei = (row.hold.amount + random.randint(1, 500)) * django_settings.CREDIT_WEI + random.randint(
        0, GWEI
    )
    # The call keeps the price with which it was accepted.
    CreditPrice.objects.create(chain_id=row.chain_id, credit_wei=django_settings.CREDIT_WEI * 9)

    assert settle() == 1

    row.refresh_from_db()
    row.hold.refresh_from_db()
    attempt = row.attempts.get()
    assert row.hold.captured_amount == row.hold.amount
    loss = Loss.objects.get()
    assert (loss.kind, loss.user_id, loss.settled_at is None) == ("extra-fee", row.user_id, False)
    assert loss.lost_wei == _gas_wei(attempt) + node.fee_wei - row.hold.amount * django_settings.CREDIT_WEI
    assert find_differences() == []


def test_a_reopened_call_is_the_loss_of_its_last_receipt(
    accept: Accept, node: OpClient, chain: Chain, settle: Settle
) -> None:
    row = accept()
    node.fee_wei = 3 * row.hold.amount * django_settings.CREDIT_WEI
    settle()
    first = Loss.objects.get().lost_wei

    losses.reopen(key=row.hold.key)
    losses.note_excess(hold_ids=[row.hold_id], now=later(0))
    assert Loss.objects.get().lost_wei is None
    fee_wei = 2 * row.hold.amount * django_settings.CREDIT_WEI
    Attempt.objects.update(extra_fee_wei=fee_wei)
    losses.settle_ended(now=later(0))

    assert Loss.objects.get().lost_wei == (first or 0) + fee_wei - node.fee_wei


def test_unpaid_gas_is_no_loss_by_the_fee(
    accept: Accept, node: OpClient, chain: Chain, settle: Settle
) -> None:
    row = accept()
    settle()
    CreditHold.objects.update(captured_amount=1)
    losses.note_excess(hold_ids=[row.hold_id], now=later(0))
    assert Loss.objects.get().lost_wei == row.attempts.get().extra_fee_wei


def test_what_is_in_flight_may_cost_its_fee_too(accept: Accept, node: OpClient) -> None:
    row = accept()
    attempt = row.attempts.get()
    (left,) = db.only_row(
        "SELECT balance_wei FROM relay_capacity_of(ARRAY[%(id)s::bigint])", {"id": row.relayer_id}
    )
    relayer = Relayer.objects.get(pk=row.relayer_id)
    assert relayer.balance_wei is not None
    assert left == relayer.balance_wei - attempt.worst_cost_wei
    assert attempt.max_extra_fee_wei > 0


@pytest.mark.usefixtures("signers")
def test_a_call_that_waits_for_its_signature_may_cost_its_fee_too(
    user: User, new_call: Callable[..., RelayCall], node: OpClient, settle: Settle
) -> None:
    with (
        patch.object(SignerClient, "sign", side_effect=SignerAway("as a test wants it")),
        pytest.raises(SignerUnavailable),
    ):
        execute(user=user, call=new_call(), now=timezone.now())
    waiting = UnsignedCall.objects.get()
    assert unsigned.sweep(now=later(10)) == 1
    assert waiting.worst_cost_wei == Attempt.objects.get().worst_cost_wei


@pytest.mark.parametrize("names_fees", [False, True])
def test_a_receipt_without_the_fee_costs_its_gas(
    accept: Accept, node: OpClient, chain: Chain, settle: Settle, names_fees: bool
) -> None:
    row = accept()
    node.names_fees, node.fee_wei = names_fees, 0

    assert settle() == 1

    row.refresh_from_db()
    attempt = row.attempts.get()
    assert attempt.extra_fee_wei == 0
    assert row.real_cost == _credits(_gas_wei(attempt))
    assert not Loss.objects.exists()


def test_a_quote_does_not_cover_what_an_operator_raises(
    user: User, profile: Profile, node: OpClient, refused: Refused
) -> None:
    prepared = prepare(user, profile)
    assert node.l1 is not None
    node.l1 = replace(node.l1, base_fee_scalar=node.l1.base_fee_scalar * 3)
    with refused(FeesTooHigh) as refusal:
        execute_prepared(user, profile, prepared)
    assert "more besides gas" in str(refusal.value)


def test_the_nightly_comparison_knows_the_fee(
    accept: Accept, node: OpClient, chain: Chain, settle: Settle
) -> None:
    row = accept()
    settle()
    attempt = row.attempts.get()
    Attempt.objects.filter(pk=attempt.pk).update(extra_fee_wei=int(attempt.extra_fee_wei) + 10**18)
    since = later(-3600)
    [stored] = reconciliation.find_differences(since=since)
    assert (stored.rule, stored.row_id) == ("the cost is that of the attempt that was mined", attempt.pk)
    _finalise(chain)
    [reported], _ = reconciliation.compare_with_nodes(since=since)
    assert (reported.rule, reported.row_id) == ("the fee besides gas is what the nodes report", attempt.pk)


def test_home_pays_for_gas_alone(accept: Accept, node: OpClient, settings: Settings, settle: Settle) -> None:
    settings.CHAIN_FAMILY, node.l1 = "ethereum", None
    row = accept()
    assert settle() == 1
    row.refresh_from_db()
    attempt = row.attempts.get()
    assert (attempt.max_extra_fee_wei, attempt.extra_fee_wei) == (0, 0)
    assert row.hold.amount == _credits(attempt.gas_limit * int(attempt.max_fee_per_gas_wei))
    assert row.real_cost == _credits(_gas_wei(attempt))
