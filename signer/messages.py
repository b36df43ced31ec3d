"""The messages between the service and the signer, in JSON."""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from signer.transactions import PolicyViolation, Refusal, SignedTransaction, UnsignedTransaction

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


class SigningRequest(NamedTuple):
    """A transaction and the address that must sign it: a relayer, or the treasury if it carries value."""

    address: str
    transaction: UnsignedTransaction
    value_wei: int = 0


class KeyList(NamedTuple):
    """The EIP-55 addresses for which a signer signs."""

    relayers: list[str]
    # The addresses in `relayers` that take no calls until staff have added them.
    spare: list[str]
    # Empty if the signer has no treasury.
    treasury: str


# The outcome of one request: signed, refused, or None while undecided (the signer's node does not respond).
Outcome = SignedTransaction | PolicyViolation | None


def write_requests(requests: Sequence[SigningRequest]) -> bytes:
    """Return the body of a signing request."""
    items = [
        {
            "address": address,
            "value_wei": value_wei,
            "chain_id": transaction.chain_id,
            "account_nonce": transaction.account_nonce,
            "max_priority_fee_per_gas_wei": transaction.max_priority_fee_per_gas_wei,
            "max_fee_per_gas_wei": transaction.max_fee_per_gas_wei,
            "gas_limit": transaction.gas_limit,
            "to": transaction.to,
            "data": transaction.data.hex(),
        }
        for address, transaction, value_wei in requests
    ]
    return json.dumps({"transactions": items}, separators=(",", ":")).encode()


def read_requests(body: bytes) -> list[SigningRequest]:
    """
    Return the requests of a body.

    Raises:
        ValueError: the body is malformed; the message does not quote it.
    """
    try:
        return [_request(item) for item in json.loads(body)["transactions"]]
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("not a list of transactions") from error


def _request(item: dict[str, Any]) -> SigningRequest:
    to, address = _text(item["to"]), _text(item["address"])
    if not _ADDRESS.fullmatch(to):
        raise ValueError("not an address")
    transaction = UnsignedTransaction(
        chain_id=_number(item["chain_id"]),
        account_nonce=_number(item["account_nonce"]),
        max_priority_fee_per_gas_wei=_number(item["max_priority_fee_per_gas_wei"]),
        max_fee_per_gas_wei=_number(item["max_fee_per_gas_wei"]),
        gas_limit=_number(item["gas_limit"]),
        to=to,
        data=bytes.fromhex(_text(item["data"])),
    )
    return SigningRequest(address, transaction, _number(item["value_wei"]))


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**256:
        raise ValueError("not an unsigned 256-bit integer")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("not a text")
    return value


def write_outcomes(outcomes: Sequence[Outcome]) -> bytes:
    """Return the body of a response, with the outcomes in the order of the requests."""
    items: list[dict[str, str] | None] = []
    for outcome in outcomes:
        if isinstance(outcome, PolicyViolation):
            items.append({"refusal": outcome.refusal, "reason": str(outcome)})
        else:
            items.append(None if outcome is None else _signed(outcome))
    return json.dumps({"results": items}, separators=(",", ":")).encode()


def _signed(transaction: SignedTransaction) -> dict[str, str]:
    return {"raw": transaction.raw.hex(), "hash": transaction.transaction_hash}


def read_outcomes(body: bytes, count: int) -> list[Outcome]:
    """
    Return the outcomes of `count` requests.

    Raises:
        ValueError: the body is malformed.
    """
    try:
        outcomes = [_outcome(item) for item in json.loads(body)["results"]]
    except (KeyError, TypeError) as error:
        raise ValueError("not a list of results") from error
    if len(outcomes) != count:
        raise ValueError("not a result for each request")
    return outcomes


def _outcome(item: dict[str, Any] | None) -> Outcome:
    if item is None:
        return None
    if "refusal" in item:
        refusal: Refusal = item["refusal"]
        return PolicyViolation(item["reason"], refusal=refusal)
    return SignedTransaction(raw=bytes.fromhex(item["raw"]), transaction_hash=item["hash"])


def write_keys(keys: KeyList) -> bytes:
    """Return the body of a response with the signer's addresses."""
    return json.dumps(keys._asdict()).encode()


def read_keys(body: bytes) -> KeyList:
    """
    Return the signer's addresses.

    Raises:
        ValueError: the body is malformed.
    """
    try:
        return KeyList(**json.loads(body))
    except TypeError as error:
        raise ValueError("not a list of keys") from error
