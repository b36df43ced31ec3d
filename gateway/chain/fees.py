"""What a type-2 transaction (EIP-1559) should offer. Pure arithmetic on wei."""

from dataclasses import dataclass
from typing import ClassVar

from gateway.common.errors import DomainError

# Nodes keep the old transaction unless both fees rise by 10 % (geth, erigon, nethermind); an eighth is safe.
_BUMP_DIVISOR = 8


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
