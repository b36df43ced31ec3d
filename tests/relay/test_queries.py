"""The status record of a relay transaction, and the history of a call."""

import random
import secrets
from collections.abc import Callable
from typing import NamedTuple

import pytest
from django.utils import timezone

from credits.models import CreditEntry
from credits.queries import balance_of
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import SendKind
from gateway.staff.pauses import switch
from relay.errors import TransactionNotFound
from relay.models import Attempt, RelayTransaction
from relay.queries.calls import RELAY, CallKey, Identity, active_transaction, rows_of_calls
from relay.queries.reports import TransactionReport, transactions_of
from relay.services.accepting import lsp15
from relay.services.accepting.submission import identify
from tests.factories import UserFactory, random_address
from tests.relay.callers import report_of
from tests.relay.chain import FaultyClient
from tests.relay.conftest import Accept
from tests.relay.workers import broadcast_all
from users.models import User

pytestmark = pytest.mark.django_db


def charged() -> list[CreditEntry]:
    """Return what relaying has cost."""
    return list(CreditEntry.objects.filter(source="RELAY_TRANSACTION"))


def test_a_list_of_calls_does_not_load_signed_and_sent_bytes(user: User, accept: Accept) -> None:
    row = accept()
    (listed,) = transactions_of(user)
    assert listed.transaction_hash == row.transaction_hash
    assert not {"payload", "signature", "digest"} & set(dir(listed))


def test_in_progress_the_figures_are_the_expected_ones(user: User, accept: Accept) -> None:
    accept()
    row = accept(channel=secrets.randbits(120))
    broadcast_all()
    report = report_of(user=user, transaction_hash=row.transaction_hash)
    # The balance and not the available credits: the other call is not paid for yet.
    assert report == TransactionReport(
        row.pk,
        "Submitted",
        str(user.profile_address),
        row.expected_cost,
        10_000,
        10_000 - row.expected_cost,
        chain_id=row.chain_id,
    )
    assert row.expected_cost > 0


def test_settled_the_figures_are_the_entrys_own(
    user: User, accept: Accept, settle: Callable[[], int]
) -> None:
    rows = [accept(channel=secrets.randbits(120)) for _ in range(2)]
    settle()
    for row in rows:
        report = report_of(user=user, transaction_hash=row.transaction_hash)
        entry = CreditEntry.objects.get(hold=row.hold)
        assert (report.credits_used, report.credits_before, report.credits_after) == (
            -entry.amount,
            entry.balance_before,
            entry.balance_after,
        )
    assert balance_of(user).balance == 10_000 - sum(-entry.amount for entry in charged())


def test_cancelled_calls_cost_nothing(
    user: User, accept: Accept, node: FaultyClient, settle: Callable[[], int]
) -> None:
    row = accept()
    node.answer_next(SendKind.REFUSED)
    broadcast_all()
    assert settle() == 1
    report = report_of(user=user, transaction_hash=row.transaction_hash)
    balances = (0, 10_000, 10_000)
    failure = (report.failure_code, report.failure_detail)
    assert report == TransactionReport(
        row.pk, "Cancelled", row.profile_address, *balances, *failure, chain_id=row.chain_id
    )
    assert failure == (
        "refused-by-node",
        "The network did not take the transaction. Nothing was charged; send the call again.",
    )


class _History(NamedTuple):
    transaction_hash: str | None
    generation: int
    failures: int
    is_paused: bool


def _history(*, user: User, identity: Identity) -> _History:
    """Return the rows of this call's earlier tries."""
    (rows,) = rows_of_calls([CallKey(identity, random_address(), user.pk, None, timezone.now())])
    assert rows.session_state == "active"
    return _History(rows.transaction_hash, rows.generation, rows.failures, rows.is_paused)


def test_another_call_and_another_controller_have_no_history_of_this_one(
    user: User, accept: Accept, new_call: Callable[..., RelayCall]
) -> None:
    call = new_call()
    row = accept(call)
    identity = identify(call=call)[1]
    others = [
        Identity(identity.digest, random_address()),
        Identity("0x" + secrets.token_hex(32), identity.controller),
    ]
    assert _history(user=user, identity=identity) == (row.transaction_hash, 1, 0, False)
    assert {_history(user=user, identity=other) for other in others} == {(None, 0, 0, False)}
    generation = random.randint(2, 9)
    for status in ("Failed", "Expired", "Cancelled"):
        RelayTransaction.objects.update(status=status, generation=generation, settled_at=timezone.now())
        expected = (None, generation + 1, int(status == "Failed"), False)
        assert _history(user=user, identity=identity) == expected
        assert {_history(user=user, identity=other) for other in others} == {(None, 0, 0, False)}
        # For any caller: a generation is the identity's, and so are its failures.
        assert _history(user=UserFactory.create(), identity=identity) == expected


def test_the_newest_decision_of_staff_decides_whether_calls_are_accepted(
    user: User, new_call: Callable[..., RelayCall]
) -> None:
    identity = identify(call=new_call())[1]
    assert not _history(user=user, identity=identity).is_paused
    for is_paused in (True, False, True):
        switch(RELAY, is_paused=is_paused, actor=user, reason="a test")
        assert _history(user=user, identity=identity).is_paused is is_paused


def test_a_call_is_active_for_its_owner_while_in_progress_or_executed(
    user: User, accept: Accept, new_call: Callable[..., RelayCall]
) -> None:
    call = new_call()
    row = accept(call)
    identity = identify(call=call)[1]
    is_active = {}
    for status in RelayTransaction.Status.values:
        settled = None if status in {"Pending", "Submitted"} else timezone.now()
        RelayTransaction.objects.update(status=status, settled_at=settled)
        is_active[status] = active_transaction(user_id=user.pk, identity=identity) == row
        history = _history(user=user, identity=identity)
        assert history.transaction_hash == (row.transaction_hash if is_active[status] else None)
        other_user = UserFactory.create()
        assert active_transaction(user_id=other_user.pk, identity=identity) is None
        assert _history(user=other_user, identity=identity).transaction_hash is None
    assert [status for status, yes in is_active.items() if yes] == [
        "Pending", "Submitted", "Success", "ExecutedExternally",
    ]  # fmt: skip


def test_calls_of_another_chain_are_not_found(
    user: User, accept: Accept, new_call: Callable[..., RelayCall]
) -> None:
    call = new_call()
    row = accept(call)
    identity = identify(call=call)[1]
    for model in (RelayTransaction, Attempt):
        model._default_manager.update(chain_id=row.chain_id + 1)
    assert _history(user=user, identity=identity) == (None, 0, 0, False)
    assert active_transaction(user_id=user.pk, identity=identity) is None
    RelayTransaction.objects.update(status="Failed", settled_at=timezone.now())
    assert _history(user=user, identity=identity).failures == 0
    with pytest.raises(TransactionNotFound):
        report_of(user=user, transaction_hash=row.transaction_hash)
    assert lsp15.last_key_manager(user=user) is None
    assert lsp15.accepted_signer(key_manager=call.key_manager, signers=[identity.controller]) is None
