"""Which contracts are key managers of trusted code, and what is final, read through the signer's own node."""

import json
from collections.abc import Collection, Sequence
from enum import Enum
from typing import Any, Protocol

import urllib3

from signer.contracts import TARGET, code_name

_MOST_REMEMBERED = 100_000


class Trust(Enum):
    """What is known of a contract."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    # No contract, or none that names a profile.
    NONE = "none"


class NodeAway(Exception):
    """The signer's node did not answer, or not for the configured chain."""


class Targets(Protocol):
    """Says of contracts whether they may be called."""

    def trust_of(self, addresses: Collection[str]) -> dict[str, Trust]:
        """
        Return what is known of each address.

        Raises:
            NodeAway: the node did not answer, or not for the configured chain.
        """
        ...

    def used_nonces(self, addresses: Collection[str]) -> dict[str, int]:
        """
        Return for each account how many account nonces the chain has used for good.

        Raises:
            NodeAway: the node did not answer, or knows no final block of the configured chain.
        """
        ...


class NodeTargets:
    """
    Asks a node for the code of key managers and of their profiles.

    Trusted code delegates for ever to one implementation and keeps its profile, so it is asked about once.
    """

    def __init__(
        self,
        url: str,
        *,
        chain_id: int,
        key_managers: Collection[str],
        profiles: Collection[str],
        # Two trips may take less than the service waits for the signer.
        timeout_seconds: float = 2,
    ) -> None:
        self._url, self._chain_id = url, chain_id
        self._key_managers = {name.lower() for name in key_managers}
        self._profiles = {name.lower() for name in profiles}
        self._http = urllib3.PoolManager(timeout=timeout_seconds, retries=False)
        self._trusted: dict[str, None] = {}

    def trust_of(self, addresses: Collection[str]) -> dict[str, Trust]:
        """Return what is known of each address; of those that are not known yet in two trips to the node."""
        trusted = {address: Trust.TRUSTED for address in addresses if address in self._trusted}
        return trusted | self._read(sorted(set(addresses) - trusted.keys()))

    def used_nonces(self, addresses: Collection[str]) -> dict[str, int]:
        """Return what the newest final block has of each account."""
        names = sorted(addresses)
        calls: list[tuple[str, list[Any]]] = [("eth_chainId", [])]
        calls += [("eth_getTransactionCount", [address, "finalized"]) for address in names]
        chain_id, *counts = self._ask(calls)
        self._check_chain(chain_id)
        # A node that knows no final block answers an error.
        return {address: _number(count) for address, count in zip(names, counts, strict=True)}

    def _check_chain(self, answer: Any) -> None:
        if _number(answer) != self._chain_id:
            raise NodeAway("the node is of another chain")

    def _read(self, addresses: Sequence[str]) -> dict[str, Trust]:
        if not addresses:
            return {}
        calls: list[tuple[str, list[Any]]] = [("eth_chainId", [])]
        calls += [("eth_getCode", [address, "latest"]) for address in addresses]
        calls += [
            ("eth_call", [{"to": address, "data": "0x" + TARGET.hex()}, "latest"]) for address in addresses
        ]
        chain_id, *answers = self._ask(calls)
        self._check_chain(chain_id)
        codes, profiles = (
            answers[: len(addresses)],
            [_address(answer) for answer in answers[len(addresses) :]],
        )
        profile_codes = self._ask([("eth_getCode", [profile or _NOBODY, "latest"]) for profile in profiles])
        read = {}
        for address, code, profile_code in zip(addresses, codes, profile_codes, strict=True):
            trust = self._judge(_bytes(code), _bytes(profile_code))
            if trust == Trust.TRUSTED:
                self._remember(address)
            read[address] = trust
        return read

    def _judge(self, code: bytes, profile_code: bytes) -> Trust:
        if not code or not profile_code:
            return Trust.NONE
        vetted = code_name(code).lower() in self._key_managers
        return (
            Trust.TRUSTED if vetted and code_name(profile_code).lower() in self._profiles else Trust.UNTRUSTED
        )

    def _remember(self, address: str) -> None:
        self._trusted[address] = None
        if len(self._trusted) > _MOST_REMEMBERED:
            self._trusted.pop(next(iter(self._trusted)))

    def _ask(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        body = [
            {"jsonrpc": "2.0", "id": place, "method": method, "params": params}
            for place, (method, params) in enumerate(calls)
        ]
        try:
            answer = self._http.request("POST", self._url, json=body)
            by_id = {item["id"]: item for item in json.loads(answer.data)}
            return [by_id[place].get("result") for place in range(len(calls))]
        except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError) as error:
            raise NodeAway(type(error).__name__) from error


_NOBODY = "0x" + "00" * 20


def _number(answer: Any) -> int:
    try:
        return int(answer, 16)
    except (TypeError, ValueError) as error:
        raise NodeAway("no number in the answer") from error


def _bytes(answer: Any) -> bytes:
    try:
        return bytes.fromhex(answer.removeprefix("0x"))
    except (AttributeError, ValueError) as error:
        raise NodeAway("no code in the answer") from error


def _address(answer: Any) -> str | None:
    """Return the address in an answered word; None where the contract answered something else, or an error."""
    if not isinstance(answer, str) or len(answer) != 66 or not answer.startswith("0x" + "00" * 12):
        return None
    return "0x" + answer[26:]
