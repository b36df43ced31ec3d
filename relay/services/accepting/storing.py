"""Stores accepted calls: the columns of a call and of its first attempt, and the statement that inserts them."""

import json
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from gateway.chain.config import get_chain
from gateway.common import db
from relay.pricing import cost_in_credits
from relay.services.accepting.calls import SubmittedCall
from signer.transactions import SignedTransaction


def insert_calls(rows: Sequence[dict[str, Any]]) -> None:
    """Store signed calls with their attempts; each row maps the columns of both to values."""
    db.first_row(_INSERT_CALLS, {"calls": json.dumps(rows)})


def columns_of(call: SubmittedCall) -> dict[str, Any]:
    """Return the columns of a call whose slot is taken, and of its attempt, without the signed bytes."""
    approval, slot = call.approval, call.slot
    expected = cost_in_credits(
        gas=approval.gas.expected, price_wei=approval.fees.expected_price_wei, credit_wei=settings.CREDIT_WEI
    )
    return {
        "chain_id": get_chain().id,
        "user_id": call.caller.user_id,
        "profile_address": call.caller.profile_address,
        "key_manager_address": call.signed.key_manager,
        "controller_address": call.identity.controller,
        "digest": call.identity.digest,
        "generation": call.rows.generation,
        "channel": call.query.channel,
        "relay_nonce": call.signed.relay_nonce,
        "validity": call.signed.validity,
        "payload": as_hex(call.signed.payload),
        "signature": as_hex(call.signed.signature),
        "is_follower": call.is_follower,
        "relayer_id": slot.relayer_id,
        "account_nonce": slot.account_nonce,
        "hold_id": slot.hold_id,
        "gas_limit": approval.gas.limit,
        "max_fee_per_gas_wei": approval.fees.max_fee_per_gas_wei,
        "max_priority_fee_per_gas_wei": approval.fees.max_priority_fee_per_gas_wei,
        "expected_cost": expected - (call.sponsorship.part_of(expected) if call.sponsorship else 0),
        "quoted_cost": call.rows.quote and call.rows.quote.credits,
        "credits_before": slot.balance,
        "request_id": call.request_id,
        "created_at": call.now.isoformat(),
    }


def signed_columns(transaction: SignedTransaction) -> dict[str, str]:
    """Return the columns that only a signed call has."""
    return {"transaction_hash": transaction.transaction_hash, "raw": as_hex(transaction.raw)}


def as_hex(data: bytes) -> str:
    """Return bytes in PostgreSQL's text format for `bytea`."""
    return rf"\x{data.hex()}"


def unhex(text: str) -> bytes:
    """Return the bytes that `as_hex` wrote."""
    return bytes.fromhex(text.removeprefix(r"\x"))


_INSERT_CALLS = "SELECT relay_insert_calls(%(calls)s::jsonb)"
