"""Reads, through the signer's own node, which called contracts are trusted, and which account nonces are final."""

import json
import re
from collections.abc import Collection, Sequence
from enum import Enum
from typing import Any, Protocol

import urllib3

from signer.contracts import TARGET, code_name

_MAX_CACHED = 100_000


class Trust(Enum):
    """The trust in a contract."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    # There is no contract, or it names no profile.
    NONE = "none"


class NodeUnavailable(Exception):
    """The signer's node did not respond, or is of another chain."""


class Targets(Protocol):
    """Reads from the chain which contracts are trusted, and which account nonces are final."""

    def trust_of(self, addresses: Collection[str]) -> dict[str, Trust]:
        """
        Return the trust in each address; addresses that the node fails to read are missing.

        Raises:
            NodeUnavailable: the node did not respond, or is of another chain.
        """
        ...

    def used_nonces(self, addresses: Collection[str]) -> dict[str, int]:
        """
        Return for each account the number of account nonces that are final on the chain.

        Raises:
            NodeUnavailable: the node did not respond, is of another chain, or has no final block.
        """
        ...


class NodeTargets:
    """
    Reads the code of key managers and of their profiles from a node.

    Trusted code never changes its implementation or its profile, so each trusted contract is read once.
    """

    def __init__(
        self,
        url: str,
        *,
        chain_id: int,
        key_managers: Collection[str],
        profiles: Collection[str],
        # Twice this is below the service's timeout for the signer.
        timeout_seconds: float = 2,
    ) -> None:
        self._url, self._chain_id = url, chain_id
        self._key_managers = {name.lower() for name in key_managers}
        self._profiles = {name.lower() for name in profiles}
        self._http = urllib3.PoolManager(timeout=timeout_seconds, retries=False)
        self._trusted: dict[str, None] = {}

    def trust_of(self, addresses: Collection[str]) -> dict[str, Trust]:
        """See `Targets`. Two round trips to the node read the uncached addresses; those that fail are missing."""
        trusted = {address: Trust.TRUSTED for address in addresses if address in self._trusted}
        return trusted | self._read(sorted(set(addresses) - trusted.keys()))

    def used_nonces(self, addresses: Collection[str]) -> dict[str, int]:
        """See `Targets`; read at the newest final block."""
        names = sorted(addresses)
        calls: list[tuple[str, list[Any]]] = [("eth_chainId", [])]
        calls += [("eth_getTransactionCount", [address, "finalized"]) for address in names]
        chain_id, *counts = self.batch(calls)
        self._check_chain(chain_id)
        # A node without a final block returns an error.
        return {address: _number(count) for address, count in zip(names, counts, strict=True)}

    def _check_chain(self, response: Any) -> None:
        if _number(response) != self._chain_id:
            raise NodeUnavailable("the node is of another chain")

    def _read(self, addresses: Sequence[str]) -> dict[str, Trust]:
        if not addresses:
            return {}
        calls: list[tuple[str, list[Any]]] = [("eth_chainId", [])]
        calls += [("eth_getCode", [address, "latest"]) for address in addresses]
        calls += [
            ("eth_call", [{"to": address, "data": "0x" + TARGET.hex()}, "latest"]) for address in addresses
        ]
        chain_id, *responses = self.batch(calls)
        self._check_chain(chain_id)
        codes, profiles = (
            responses[: len(addresses)],
            [_address(response) for response in responses[len(addresses) :]],
        )
        profile_codes = self.batch(
            [("eth_getCode", [profile or _ZERO_ADDRESS, "latest"]) for profile in profiles]
        )
        read = {}
        for address, code, response, profile_code in zip(
            addresses, codes, responses[len(addresses) :], profile_codes, strict=True
        ):
            if response is _NODE_ERROR:
                continue
            trust = self._judge(_bytes(code), _bytes(profile_code))
            if trust == Trust.TRUSTED:
                self._cache(address)
            read[address] = trust
        return read

    def _judge(self, code: bytes, profile_code: bytes) -> Trust:
        if not code or not profile_code:
            return Trust.NONE
        vetted = code_name(code).lower() in self._key_managers
        return (
            Trust.TRUSTED if vetted and code_name(profile_code).lower() in self._profiles else Trust.UNTRUSTED
        )

    def _cache(self, address: str) -> None:
        self._trusted[address] = None
        if len(self._trusted) > _MAX_CACHED:
            self._trusted.pop(next(iter(self._trusted)))

    def batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        """
        Return each call's result, None if the contract fails, and `_NODE_ERROR` for any other error.

        Raises:
            NodeUnavailable: the node did not respond.
        """
        body = [
            {"jsonrpc": "2.0", "id": place, "method": method, "params": params}
            for place, (method, params) in enumerate(calls)
        ]
        try:
            response = self._http.request("POST", self._url, json=body, preload_content=False)
            answer = response.read(_MOST_BYTES)
            # Close the connection if there is more.
            response.drain_conn() if len(answer) < _MOST_BYTES else response.close()
            by_id = {item["id"]: item for item in json.loads(answer)}
            return [_result(by_id[place]) for place in range(len(calls))]
        except Exception as error:
            # Any exception while reading a response is the node's fault.
            raise NodeUnavailable(type(error).__name__) from error


# Code of a key manager has at most 24,576 bytes, and few are read at a time.
_MOST_BYTES = 8 * 1024 * 1024
_ZERO_ADDRESS = "0x" + "00" * 20
_NODE_ERROR = object()
# The error codes and messages of nodes for a contract that fails; a node that is busy or behind uses others.
_FAILURE_CODES = {3, -32015}
_FAILURE = re.compile(r"revert|out ?of ?gas|opcode|stack ?(under|over)flow|jump|evm error", re.IGNORECASE)


def _result(response: dict[str, Any]) -> Any:
    error = response.get("error")
    if error is None or error["code"] in _FAILURE_CODES or _FAILURE.search(error["message"]):
        return response.get("result")
    return _NODE_ERROR


def _number(response: Any) -> int:
    try:
        return int(response, 16)
    except (TypeError, ValueError) as error:
        raise NodeUnavailable("response without a number") from error


def _bytes(response: Any) -> bytes:
    try:
        return bytes.fromhex(response.removeprefix("0x"))
    except (AttributeError, ValueError) as error:
        raise NodeUnavailable("response without code") from error


def _address(response: Any) -> str | None:
    """Return the address that a contract call returned; None for any other value or an error."""
    if not isinstance(response, str) or len(response) != 66 or not response.startswith("0x" + "00" * 12):
        return None
    return "0x" + response[26:]
