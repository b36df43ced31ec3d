"""What a type-2 transaction (EIP-1559) offers, within what bounds, and the gas limit of a follower. Pure arithmetic."""

from dataclasses import dataclass
from typing import ClassVar

from gateway.chain.contracts import encode_execute_relay_call
from gateway.common.errors import DomainError

# Nodes keep the old transaction unless both fees rise by 10 % (geth, erigon, nethermind); an eighth is safe.
_BUMP_DIVISOR = 8
_LARGEST_RISE = 8


class FeesTooHigh(DomainError):
    """
    The chain's base fee is above what the service pays; repeat when the chain is calmer.

    Gas costs `pricePerGasWei` now, and the service pays `maximumPricePerGasWei`, both as decimal text.
    """

    code, title, status, retryable = "fees-too-high", "The chain is too expensive right now", 503, True
    retry_seconds: ClassVar[int] = 60


@dataclass(frozen=True, slots=True)
class Fees:
    """Wei per gas: the most that may be paid, the validator's part, the price at the current base fee."""

    max_fee_per_gas_wei: int
    max_priority_fee_per_gas_wei: int
    expected_price_wei: int


@dataclass(frozen=True, slots=True)
class FeePolicy:
    """The least and the most that the service offers as max fee, and as its part for the validator, in wei per gas."""

    floor_wei: int
    cap_wei: int
    tip_wei: int
    tip_cap_wei: int

    @property
    def new_call_cap_wei(self) -> int:
        """The most that a new call offers: four fifths of the cap, which leaves room for replacements."""
        return max(self.floor_wei, self.cap_wei * 4 // 5)

    def tip_for(self, market_tip_wei: int) -> int:
        """Return the tip to offer where others pay this much; strangers may pay anything, so it is bounded."""
        return min(max(self.tip_wei, market_tip_wei), self.tip_cap_wei)

    def quote_new_call(self, *, base_fee_wei: int, market_tip_wei: int) -> Fees:
        """
        Return what a new call offers at this base fee, where others pay this tip.

        Raises:
            FeesTooHigh: the chain asks for more than the service pays.
        """
        return quote_fees(
            base_fee_wei=base_fee_wei,
            tip_wei=self.tip_for(market_tip_wei),
            floor_wei=self.floor_wei,
            cap_wei=self.new_call_cap_wei,
        )


def quote_fees(*, base_fee_wei: int, tip_wei: int, floor_wei: int, cap_wei: int) -> Fees:
    """
    Offer room for the base fee to double, at least `floor_wei` and at most `cap_wei`.

    Six full blocks in a row double the base fee, so the offer stays minable that
    long. Validators may refuse anything below a floor, whatever the base fee is.
    Close to the cap the tip shrinks, down to half of what others pay; with less a
    transaction would wait too long.

    Raises:
        FeesTooHigh: base fee and half the tip together exceed the cap.
    """
    least = base_fee_wei + -(-tip_wei // 2)
    if least > cap_wei:
        raise FeesTooHigh(
            "The chain asks for more per gas than the service pays. Repeat later.",
            retry_after=FeesTooHigh.retry_seconds,
            pricePerGasWei=str(least),
            maximumPricePerGasWei=str(cap_wei),
        )
    highest = min(cap_wei, max(floor_wei, 2 * base_fee_wei + tip_wei))
    return Fees(
        max_fee_per_gas_wei=highest,
        max_priority_fee_per_gas_wei=min(tip_wei, highest - base_fee_wei),
        expected_price_wei=min(highest, base_fee_wei + tip_wei),
    )


def highest_base_fee(base_fee_wei: int, *, blocks: int) -> int:
    """Return how high the base fee can be after so many blocks: EIP-1559 lets it rise by an eighth in each."""
    for _ in range(blocks):
        base_fee_wei += max(1, -(-base_fee_wei // _LARGEST_RISE))
    return base_fee_wei


def bump(fees: Fees, *, cap_wei: int) -> Fees | None:
    """
    Return the fees that replace a pending transaction with these fees: both parts an eighth higher.

    None if the replacement would exceed the cap.
    """
    highest = _raised(fees.max_fee_per_gas_wei)
    tip = _raised(fees.max_priority_fee_per_gas_wei)
    if highest > cap_wei:
        return None
    return Fees(
        max_fee_per_gas_wei=highest,
        max_priority_fee_per_gas_wei=min(tip, highest),
        expected_price_wei=min(highest, fees.expected_price_wei + tip - fees.max_priority_fee_per_gas_wei),
    )


def _raised(wei: int) -> int:
    return wei + max(1, -(-wei // _BUMP_DIVISOR))


# Gas for a relay call that cannot be estimated as a whole, because its nonce is not due yet.
#
# The two halves are estimated separately: the key manager's verification (LSP-20) and the
# profile's execution, called by the key manager. The rest of `executeRelayCall`
# is added here. Measured on anvil with the contracts of 0.14.0 behind minimal proxies:
#
# | payload, second use of the channel | least limit | this formula |
# |---|---|---|
# | `execute`, LYX to a new account / to a profile | 125,272 / 117,807 | 133,986 / 124,668 |
# | `execute`, LYX under 1 / 30 allowed calls | 118,782 / 189,088 | 125,495 / 196,883 |
# | `execute`, a call with 4 kB of calldata | 140,908 | 159,606 |
# | `setData`, nothing / 93 bytes / 1 kB | 67,794 / 160,942 / 863,618 | 96,753 / 190,203 / 902,396 |
# | `setData`, 10 kB | 7,844,973 | 8,115,727 |
# | `executeBatch`, LYX to 3 / 20 / 100 new accounts | 219,037 / 960,251 / 4,460,336 | 228,580 / 973,683 / 4,492,489 |
#
# The first use of a channel needs 17,400 more. A follower is never the first, since
# the calls before it use its channel. Where calldata alone decides the price
# (EIP-7623), both halves hold that price and the figure is up to 75 % too high.
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
