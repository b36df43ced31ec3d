"""Rows that the database itself refuses."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Model, ProtectedError

from credits.models import CreditHold
from gateway.common.fields import UINT256_MAX
from relay.models import Attempt, Relayer, RelayTransaction
from tests.relay.conftest import Accept
from tests.relay.signing import window

pytestmark = pytest.mark.django_db


def assert_refused(constraint: str, write: Callable[[], object]) -> None:
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        write()


def test_one_call_is_active_on_a_nonce(accept: Accept) -> None:
    first, second = accept(), accept(ahead=1)
    changed = RelayTransaction.objects.filter(pk=second.pk)
    assert_refused("relaytransaction_active_nonce", lambda: changed.update(relay_nonce=first.relay_nonce))
    ended = {"status": "Failed", "settled_at": datetime.now(UTC)}
    RelayTransaction.objects.filter(pk=first.pk).update(**ended)
    assert changed.update(relay_nonce=first.relay_nonce) == 1


def test_a_generation_of_an_identity_exists_once(accept: Accept) -> None:
    first, second = accept(), accept(ahead=1)
    assert_refused(
        "relaytransaction_identity",
        lambda: RelayTransaction.objects.filter(pk=second.pk).update(digest=first.digest),
    )


@pytest.mark.parametrize("status", ["Success", "Failed", "Expired", "Cancelled", "ExecutedExternally"])
def test_final_status_and_settlement_time_are_set_together(accept: Accept, status: str) -> None:
    row = RelayTransaction.objects.filter(pk=accept().pk)
    assert_refused("relaytransaction_settled_when_final", lambda: row.update(status=status))
    assert_refused("relaytransaction_settled_when_final", lambda: row.update(settled_at=datetime.now(UTC)))


def test_an_attempt_has_a_whole_receipt_or_none(accept: Accept) -> None:
    attempt = Attempt.objects.filter(relay_transaction=accept())
    assert_refused("attempt_receipt_whole", lambda: attempt.update(block_number=1))
    assert attempt.update(block_number=1, succeeded=True, gas_used=1) == 1


def copy_of(row: Model, **changes: object) -> dict[str, Any]:
    """Return the row's fields for another row, with changes."""
    fields = [field.name for field in row._meta.concrete_fields if not field.primary_key]
    return {**{name: getattr(row, name) for name in fields}, **changes}


def test_two_attempts_share_no_sequence_and_no_hash(accept: Accept) -> None:
    attempt = accept().attempts.get()
    new_hash = "0x" + secrets.token_hex(32)
    assert_refused(
        "attempt_slot", lambda: Attempt.objects.create(**copy_of(attempt, transaction_hash=new_hash))
    )
    assert_refused("attempt_transaction_hash", lambda: Attempt.objects.create(**copy_of(attempt, sequence=1)))


def test_the_same_address_hash_and_identity_may_exist_on_another_chain(accept: Accept) -> None:
    call = accept()
    attempt, relayer = call.attempts.get(), call.relayer
    assert {row.chain_id for row in (call, attempt, relayer)} == {settings.CHAIN_ID}
    assert_refused("relayer_address", lambda: Relayer.objects.create(**copy_of(relayer)))
    other_chain = settings.CHAIN_ID + 1
    there = Relayer.objects.create(**copy_of(relayer, chain_id=other_chain))
    hold = CreditHold.objects.create(account=call.hold.account, key=secrets.token_hex(8), amount=1)
    same_call = copy_of(call, chain_id=other_chain, relayer=there, hold=hold)
    assert_refused(
        "relaytransaction_identity",
        lambda: RelayTransaction.objects.create(**{**same_call, "chain_id": call.chain_id}),
    )
    its_call = RelayTransaction.objects.create(**same_call)
    Attempt.objects.create(
        **copy_of(attempt, chain_id=other_chain, relayer=there, relay_transaction=its_call)
    )


def test_relayed_calls_cannot_be_deleted(accept: Accept) -> None:
    row = accept()
    for parent in (row, row.relayer, row.user, row.hold):
        with pytest.raises(ProtectedError):
            parent.delete()


@pytest.mark.parametrize(
    ("validity", "timestamp", "expires"),
    [
        (0, 2**60, False),
        (window(5, 0), 2**60, False),
        (window(0, 100), 100, False),
        (window(0, 100), 101, True),
        (window(2**127, 100), 99, False),
    ],
)
def test_a_call_expires_after_the_last_second_of_its_window(
    validity: int, timestamp: int, expires: bool
) -> None:
    assert RelayTransaction(validity=validity).expires_before(timestamp) is expires


def test_the_calldata_of_a_stored_call_equals_the_sent_calldata(accept: Accept) -> None:
    row = RelayTransaction.objects.get(pk=accept().pk)
    assert row.calldata in bytes(row.attempts.get().raw)
    assert bytes(row.payload) in row.calldata


def test_the_largest_numbers_fit(accept: Accept) -> None:
    row = accept()
    RelayTransaction.objects.filter(pk=row.pk).update(
        relay_nonce=UINT256_MAX, validity=UINT256_MAX, channel=2**128 - 1
    )
    row.refresh_from_db()
    assert (row.relay_nonce, row.validity, row.channel) == (UINT256_MAX, UINT256_MAX, 2**128 - 1)


@pytest.mark.parametrize(("next_nonce", "mined", "in_flight"), [(7, 5, 2), (5, 5, 0), (5, 7, 0)])
def test_in_flight_is_never_negative(next_nonce: int, mined: int, in_flight: int) -> None:
    assert Relayer(next_account_nonce=next_nonce, mined_account_nonce=mined).in_flight == in_flight
