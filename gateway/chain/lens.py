"""
A lens: code that the node runs in one `eth_call` in place of many, to read several contracts at once.

The code is on no chain: the call puts it at an address of its own by a state override, which geth, erigon,
nethermind, reth and anvil know. It answers a list of questions in order. A question is an address (20 bytes),
the length of its calldata (2 bytes) and the calldata; without calldata it asks for the contract's code.

An answer is its length (32 bytes) and so many bytes. A contract that reverts, uses up its 500,000 gas or returns
more than 512 bytes has the length 2^256 - 1 and no bytes. The answer about code is 128 bytes: its size, its hash,
and its first 64 bytes, padded with zeros.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from eth_hash.auto import keccak

from signer.contracts import implementation_of

ADDRESS = "0x00000000000000000000000000000000004c454e"
# Four questions with all of their gas, and room for the lens itself.
_GAS = 5_000_000
_WORD, _SHOWN_CODE_BYTES = 32, 64
_FAILED = 2**256 - 1

# The stack holds, from below: where the next question begins, where the next answer goes, and what a line adds.
_CODE = bytes.fromhex(
    "60 00 60 00"  #                          both begin at 0
    "5b 81 36 11 15 60 89 57"  #        0x04  no question left: 0x89
    "81 35 60 60 1c"  #                       the address
    "82 60 14 01 35 60 f0 1c"  #              the length of the calldata
    "80 15 60 56 57"  #                       none: 0x56
    "80 84 60 16 01 84 37"  #                 CALLDATACOPY to where the answer goes
    "60 00 60 00 82 85 85 62 07 a1 20 fa"  #  STATICCALL with 500,000 gas
    "3d 61 02 01 11 16 60 46 57"  #           succeeded, and no more than 512 bytes: 0x46
    "60 01 60 00 03 83 52 60 00 60 75 56"  #  failed: 2^256 - 1, no bytes, 0x75
    "5b 3d 83 52"  #                    0x46  the length of what was returned
    "3d 60 00 84 60 20 01 3e 3d 60 75 56"  #  RETURNDATACOPY behind it, 0x75
    "5b 60 80 83 52"  #                 0x56  128
    "81 3b 83 60 20 01 52"  #                 EXTCODESIZE
    "81 3f 83 60 40 01 52"  #                 EXTCODEHASH
    "60 40 60 00 84 60 60 01 84 3c 60 80"  #  EXTCODECOPY of 64 bytes
    "5b 83 01 60 20 01 92 50 90 50"  #  0x75  the next answer goes behind this one
    "60 16 01 82 01 91 50 60 04 56"  #        the next question begins behind this one; 0x04
    "5b 60 00 f3"  #                    0x89  RETURN all answers
)
_OVERRIDE = {ADDRESS: {"code": "0x" + _CODE.hex()}}


class Question(NamedTuple):
    """A contract (0x-hex in any casing), and the calldata to call it with; none asks for its code."""

    address: str
    calldata: bytes = b""


def call(questions: Sequence[Question]) -> tuple[str, list[Any]]:
    """Return the JSON-RPC method and parameters that ask these questions at the newest block."""
    data = b"".join(
        bytes.fromhex(address[2:]) + len(calldata).to_bytes(2, "big") + calldata
        for address, calldata in questions
    )
    return "eth_call", [{"to": ADDRESS, "data": "0x" + data.hex(), "gas": hex(_GAS)}, "latest", _OVERRIDE]


def answers(returned: bytes, count: int) -> list[bytes] | None:
    """Return the bytes that answer each question, empty where a contract failed; None if a lens did not write them."""
    found: list[bytes] = []
    at = 0
    while at < len(returned):
        length = int.from_bytes(returned[at : at + _WORD], "big")
        at += _WORD
        if length == _FAILED:
            length = 0
        found.append(returned[at : at + length])
        at += length
    return found if len(found) == count and at == len(returned) else None


def code_answer(code: bytes) -> bytes:
    """Return what a lens answers about a contract with this code."""
    code_hash = keccak(code) if code else bytes(_WORD)
    return (
        len(code).to_bytes(_WORD, "big")
        + code_hash
        + code[:_SHOWN_CODE_BYTES].ljust(_SHOWN_CODE_BYTES, b"\0")
    )


def code_name(answer: bytes) -> str:
    """Return the name of a contract's code as `contracts.code_name` does; empty where there is no code."""
    size = int.from_bytes(answer[:_WORD], "big")
    if not size:
        return ""
    code = answer[2 * _WORD : 2 * _WORD + size]
    implementation = implementation_of(code) if size <= _SHOWN_CODE_BYTES else None
    return implementation or "0x" + answer[_WORD : 2 * _WORD].hex()
