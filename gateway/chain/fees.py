"""Fees of type-2 transactions (EIP-1559) and their limits, and the gas limit of followers. Pure arithmetic."""

from dataclasses import dataclass
from typing import ClassVar

from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.l1_fees import L1Prices
from gateway.common.errors import DomainError

# Nodes keep the old transaction unless both fees rise by 10 % (geth, erigon, nethermind); an eighth is safe.
_BUMP_DIVISOR = 8
# How long L1's prices may rise after a transaction is signed until it costs more than was held, and L1's block time.
_L1_RISE_SECONDS, _L1_BLOCK_SECONDS = 60, 12


class FeesTooHigh(DomainError):
    """
    The chain's base fee is above the service's maximum; repeat when it has fallen.

    Gas costs `pricePerGasWei` now, and the service pays at most `maximumPricePerGasWei`, both as decimal text. On a
    chain that charges more than gas, a call with a quote may instead cost `extraFeeWei` besides gas where its quote
    covers `maximumExtraFeeWei`: prepare that call again.
    """

    code, title, status, retryable = "fees-too-high", "The chain is too expensive right now", 503, True
    retry_seconds: ClassVar[int] = 60


@dataclass(frozen=True, slots=True)
class Fees:
    """
    Wei per gas: the maximum, the validator's tip, and the price at the current base fee.

    On a chain of the OP stack, which charges more than gas, `l1` has L1's current prices.
    """

    max_fee_per_gas_wei: int
    max_priority_fee_per_gas_wei: int
    expected_price_wei: int
    l1: L1Prices | None = None

    def expected_cost_wei(self, *, gas: int, data_bytes: int) -> int:
        """Return what a transaction that uses this gas, with this much calldata, costs now."""
        extra = self.l1.expected_fee_wei(data_bytes=data_bytes, gas=gas) if self.l1 else 0
        return gas * self.expected_price_wei + extra

    def highest_cost_wei(self, *, gas_limit: int, data_bytes: int) -> int:
        """Return the most that a transaction with this gas limit and this much calldata costs."""
        extra = self.highest_extra_fee_wei(gas_limit=gas_limit, data_bytes=data_bytes)
        return gas_limit * self.max_fee_per_gas_wei + extra

    def highest_extra_fee_wei(self, *, gas_limit: int, data_bytes: int, later_seconds: int = 0) -> int:
        """
        Return the most that the chain charges besides gas, if it mines the transaction within a minute.

        `later_seconds` is the time until the transaction is signed.
        """
        if self.l1 is None:
            return 0
        blocks = -(-(_L1_RISE_SECONDS + later_seconds) // _L1_BLOCK_SECONDS)
        return self.l1.highest_fee_wei(data_bytes=data_bytes, gas_limit=gas_limit, l1_blocks=blocks)


@dataclass(frozen=True, slots=True)
class FeePolicy:
    """Lower and upper limits of the max fee and of the tip that the service offers, in wei per gas."""

    floor_wei: int
    cap_wei: int
    tip_wei: int
    tip_cap_wei: int

    @property
    def new_call_cap_wei(self) -> int:
        """The maximum for a new call: four fifths of the cap, which leaves room for replacements."""
        return max(self.floor_wei, self.cap_wei * 4 // 5)

    def tip_for(self, market_tip_wei: int) -> int:
        """Return the tip to offer at this market tip. It is limited, because other senders may pay any tip."""
        return min(max(self.tip_wei, market_tip_wei), self.tip_cap_wei)

    def quote_new_call(self, *, base_fee_wei: int, market_tip_wei: int, least_tip_wei: int = 0) -> Fees:
        """
        Return the fees of a new call at this base fee, market tip and lowest tip that the nodes take.

        Raises:
            FeesTooHigh: the fees would exceed the maximum.
        """
        return quote_fees(
            base_fee_wei=base_fee_wei,
            tip_wei=self.tip_for(market_tip_wei),
            least_tip_wei=least_tip_wei,
            floor_wei=self.floor_wei,
            cap_wei=self.new_call_cap_wei,
        )


def quote_fees(
    *, base_fee_wei: int, tip_wei: int, floor_wei: int, cap_wei: int, least_tip_wei: int = 0
) -> Fees:
    """
    Return fees that allow the base fee to double, at least `floor_wei` and at most `cap_wei`.

    Six full blocks in a row double the base fee, so the transaction stays minable for
    at least six blocks. Validators may refuse fees below a floor at any base fee. Close
    to the cap the tip shrinks, but not below half of `tip_wei`, because a transaction
    with a smaller tip would wait too long, and not below `least_tip_wei`, because nodes refuse it.

    Raises:
        FeesTooHigh: base fee and the smallest such tip together exceed the cap.
    """
    least_tip = max(-(-tip_wei // 2), least_tip_wei)
    tip_wei, least = max(tip_wei, least_tip_wei), base_fee_wei + least_tip
    if least > cap_wei:
        required = (
            f"The chain's nodes require a tip of {least_tip_wei} wei per gas. " if least_tip_wei else ""
        )
        raise FeesTooHigh(
            f"{required}Gas costs more than the service currently pays. Retry later.",
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


def bump(fees: Fees, *, cap_wei: int) -> Fees | None:
    """
    Return the fees with which to replace a transaction: both fees an eighth higher; None if that exceeds the cap.
    """
    highest = _raised(fees.max_fee_per_gas_wei)
    tip = _raised(fees.max_priority_fee_per_gas_wei)
    if highest > cap_wei:
        return None
    return Fees(
        max_fee_per_gas_wei=highest,
        max_priority_fee_per_gas_wei=min(tip, highest),
        expected_price_wei=min(highest, fees.expected_price_wei + tip - fees.max_priority_fee_per_gas_wei),
        l1=fees.l1,
    )


def _raised(wei: int) -> int:
    return wei + max(1, -(-wei // _BUMP_DIVISOR))


# The gas limit of a relay call that a node cannot estimate as a whole, because its nonce is not due yet. It is the sum
# of three parts: estimates of the key manager's verification (LSP-20) and of the profile's execution, and a constant
# for the rest of `executeRelayCall`. With the contracts of 0.14.0 behind minimal proxies, the sum is 1 to 14 % above
# the lowest limit, and 18 to 43 % for a `setData` of up to 93 bytes. If calldata alone decides the price (EIP-7623),
# both estimates contain it, and the sum is up to 75 % too high. The first call of a channel needs 17,400 more, but a
# follower is never the first.
_TRANSACTION_GAS = 21_000
# EIP-2028: 4 gas for a zero byte, 16 for another; EIP-7623 charges at least 10 per 4 of that.
_ZERO_GAS, _OTHER_GAS = 4, 16
_FLOOR_GAS, _FLOOR_PER = 10, 4
# Recovery, nonce, validity, reentrancy guard, event and the calls through both proxies; 32,000 were measured.
_RELAY_GAS = 40_000
# The payload is packed, prefixed and hashed word by word, at 112 gas each; memory costs extra.
_WORD_BYTES, _WORD_GAS, _MEMORY_DIVISOR = 32, 128, 32
# EIP-150 withholds 1/64 of the gas at each of two calls: to the key manager's implementation, and to the profile.
_PASSED_ON = 63


def follower_gas(*, verifying_gas: int, executing_gas: int, verifying_calldata: bytes, payload: bytes) -> int:
    """Return a gas limit for the whole relay call from the estimates of both parts as separate transactions."""
    verifying = verifying_gas - _intrinsic_gas(verifying_calldata)
    executing = executing_gas - _intrinsic_gas(payload)
    words = -(-len(payload) // _WORD_BYTES)
    copying = words * _WORD_GAS + words * words // _MEMORY_DIVISOR
    # Signature, nonce and validity are unknown here, so assume the most expensive ones: without zero bytes.
    calldata = encode_execute_relay_call(
        signature=b"\xff" * 65, nonce=2**256 - 1, validity=2**256 - 1, payload=payload
    )
    inside = _passed_on(verifying + copying + _RELAY_GAS + _passed_on(executing))
    return max(_intrinsic_gas(calldata) + inside, _floor_gas(calldata))


def _passed_on(gas: int) -> int:
    """Return the gas that a caller needs so that its callee gets `gas`."""
    return gas + -(-gas // _PASSED_ON)


def _data_gas(calldata: bytes) -> int:
    zeros = calldata.count(0)
    return zeros * _ZERO_GAS + (len(calldata) - zeros) * _OTHER_GAS


def _intrinsic_gas(calldata: bytes) -> int:
    return _TRANSACTION_GAS + _data_gas(calldata)


def _floor_gas(calldata: bytes) -> int:
    return _TRANSACTION_GAS + _data_gas(calldata) * _FLOOR_GAS // _FLOOR_PER
