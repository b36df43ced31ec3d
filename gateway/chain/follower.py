"""
Gas for a relay call that cannot be estimated as a whole, because its nonce is not due yet.

The two halves are estimated separately: the key manager's verification (LSP-20) and the
profile's execution, called by the key manager. The rest of `executeRelayCall`
is added here. Measured on anvil with the contracts of 0.14.0 behind minimal proxies:

| payload, second use of the channel | least limit | this formula |
|---|---|---|
| `execute`, LYX to a new account / to a profile | 125,272 / 117,807 | 133,986 / 124,668 |
| `execute`, LYX under 1 / 30 allowed calls | 118,782 / 189,088 | 125,495 / 196,883 |
| `execute`, a call with 4 kB of calldata | 140,908 | 159,606 |
| `setData`, nothing / 93 bytes / 1 kB | 67,794 / 160,942 / 863,618 | 96,753 / 190,203 / 902,396 |
| `setData`, 10 kB | 7,844,973 | 8,115,727 |
| `executeBatch`, LYX to 3 / 20 / 100 new accounts | 219,037 / 960,251 / 4,460,336 | 228,580 / 973,683 / 4,492,489 |

The first use of a channel needs 17,400 more. A follower is never the first, since
the calls before it use its channel. Where calldata alone decides the price
(EIP-7623), both halves hold that price and the figure is up to 75 % too high.
"""

from gateway.chain.contracts import encode_execute_relay_call

_TRANSACTION_GAS = 21_000
# EIP-2028: 4 gas for a zero byte, 16 for another; EIP-7623 asks at least 10 per 4 of that.
_ZERO_GAS, _OTHER_GAS = 4, 16
_FLOOR_GAS, _FLOOR_PER = 10, 4
# Recovery, nonce, validity, reentrancy guard, event and the calls through both proxies: 32,000 measured.
_RELAY_GAS = 40_000
# The payload is packed, prefixed and hashed word by word: 112 gas each, and memory beyond that.
_WORD_BYTES, _WORD_GAS, _MEMORY_DIVISOR = 32, 128, 32
# EIP-150 keeps 1/64 back at each of two calls: into the key manager's implementation, and on to the profile.
_PASSED_ON = 63


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
    inside = _passed_on(verifying + copying + _RELAY_GAS + _passed_on(executing))
    return max(_intrinsic_gas(calldata) + inside, _floor_gas(calldata))


def _passed_on(gas: int) -> int:
    """Return what a caller must have for a callee to get `gas`."""
    return gas + -(-gas // _PASSED_ON)


def _data_gas(calldata: bytes) -> int:
    zeros = calldata.count(0)
    return zeros * _ZERO_GAS + (len(calldata) - zeros) * _OTHER_GAS


def _intrinsic_gas(calldata: bytes) -> int:
    return _TRANSACTION_GAS + _data_gas(calldata)


def _floor_gas(calldata: bytes) -> int:
    return _TRANSACTION_GAS + _data_gas(calldata) * _FLOOR_GAS // _FLOOR_PER
