"""What travels between the service and the signer: JSON in both directions."""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from signer.transactions import PolicyViolation, Refusal, SignedTransaction, UnsignedTransaction

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


class SigningRequest(NamedTuple):
    """A transaction, and the address that shall sign it: a relayer, or the treasury for one that carries value."""

    address: str
    transaction: UnsignedTransaction
    value_wei: int = 0


class KeyList(NamedTuple):
    """The EIP-55 addresses that a signer signs for."""

    relayers: list[str]
    # Those of `relayers` that take calls only once staff have added them.
    spare: list[str]
    # Empty where the signer holds no treasury.
    treasury: str


# What became of one request: it was refused, or nothing can be said now (the signer's node is away), or it is signed.
Outcome = SignedTransaction | PolicyViolation | None


def write_requests(requests: Sequence[SigningRequest]) -> bytes:
    """Return the body that asks for these signatures."""
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
        ValueError: it is not what `write_requests` writes; the text names no part of it.
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
        raise ValueError("not a number of 256 bits")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("not a text")
    return value


def write_outcomes(outcomes: Sequence[Outcome]) -> bytes:
    """Return the answer to a body of requests, in their order."""
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
    Return what became of so many requests.

    Raises:
        ValueError: the body says something else.
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
    """Return the answer to the question for the signer's addresses."""
    return json.dumps(keys._asdict()).encode()


def read_keys(body: bytes) -> KeyList:
    """
    Return the signer's addresses.

    Raises:
        ValueError: the body says something else.
    """
    try:
        return KeyList(**json.loads(body))
    except TypeError as error:
        raise ValueError("not a list of keys") from error
