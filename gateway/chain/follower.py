"""
Gas of a relay call that cannot be estimated as a whole, because its nonce is not due yet.

The two halves are estimated apart: the key manager's verification (LSP-20) and the
profile's execution, called by the key manager. What `executeRelayCall` does besides
is added here. Measured with the contracts of 0.14.0 behind minimal proxies on
anvil, as the least gas limit that works less both halves' own gas:

| payload, second use of the channel | least limit | this formula |
|---|---|---|
| `execute`, LYX to a new account / to a profile | 125,284 / 117,807 | 132,281 / 123,109 |
| `execute`, LYX under 1 / 30 allowed calls | 118,794 / 189,076 | 123,923 / 194,195 |
| `execute`, a call with 4 kB of calldata | 140,908 | 157,739 |
| `setData`, nothing / 93 bytes / 1 kB | 67,782 / 160,954 / 863,618 | 95,640 / 187,629 / 888,920 |
| `setData`, 10 kB | 7,844,901 | 7,991,661 |
| `executeBatch`, 3 / 20 calls | 219,037 / 400,914 | 225,443 / 408,556 |

The first use of a channel needs 17,400 more. A follower is never the first, since
the calls before it use its channel. Where calldata alone decides the price
(EIP-7623), both halves hold that price and the figure is up to 75 % too high.
"""

from gateway.chain.contracts import encode_execute_relay_call

_TRANSACTION_GAS = 21_000
# EIP-2028: 4 gas for a zero byte, 16 for another; EIP-7623 asks at least 10 per 4 of that.
_ZERO_GAS, _OTHER_GAS = 4, 16
_FLOOR_GAS, _FLOOR_PER = 10, 4
# Recovery, nonce, validity, reentrancy guard, event and the calls through both proxies: 36,900 at the most.
_RELAY_GAS = 40_000
# The payload is packed, prefixed and hashed word by word: 112 gas each, and memory beyond that.
_WORD_BYTES, _WORD_GAS, _MEMORY_DIVISOR = 32, 128, 32
# EIP-150 keeps 1/64 back at the call from key manager to profile.
_KEPT_BACK = 63


def follower_gas(*, verifying_gas: int, executing_gas: int, verifying_calldata: bytes, payload: bytes) -> int:
    """Return a gas limit for the whole relay call, given the estimates of both halves as transactions."""
    verifying = verifying_gas - _intrinsic_gas(verifying_calldata)
    executing = executing_gas - _intrinsic_gas(payload)
    words = -(-len(payload) // _WORD_BYTES)
    copying = words * _WORD_GAS + words * words // _MEMORY_DIVISOR
    # Signature, nonce and validity are unknown here; without zero bytes they cost most.
    calldata = encode_execute_relay_call(
        signature=b"\xff" * 65, nonce=2**256 - 1, validity=2**256 - 1, payload=payload
    )
    inside = verifying + executing + -(-executing // _KEPT_BACK) + copying + _RELAY_GAS
    return max(_intrinsic_gas(calldata) + inside, _floor_gas(calldata))


def _data_gas(calldata: bytes) -> int:
    zeros = calldata.count(0)
    return zeros * _ZERO_GAS + (len(calldata) - zeros) * _OTHER_GAS


def _intrinsic_gas(calldata: bytes) -> int:
    return _TRANSACTION_GAS + _data_gas(calldata)


def _floor_gas(calldata: bytes) -> int:
    return _TRANSACTION_GAS + _data_gas(calldata) * _FLOOR_GAS // _FLOOR_PER
