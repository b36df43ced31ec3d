"""What to offer for gas when an attempt is signed after acceptance."""

from gateway.chain.config import get_chain
from gateway.chain.fees import Fees, FeesTooHigh, bump, quote_fees
from gateway.chain.types import Head
from relay.models import Attempt

# One gwei: the most that LUKSO's validators ask for.
_TIP_WEI = 10**9


def fees_today(*, head: Head) -> Fees:
    """Return today's fees in wei, or the cap where the chain asks for more: a dead end cannot wait for cheaper gas."""
    policy = get_chain().fees
    tip = min(policy.cap_wei, _TIP_WEI)
    try:
        return quote_fees(
            base_fee_wei=head.base_fee_wei, tip_wei=tip, floor_wei=policy.floor_wei, cap_wei=policy.cap_wei
        )
    except FeesTooHigh:
        return Fees(
            max_fee_per_gas_wei=policy.cap_wei,
            max_priority_fee_per_gas_wei=tip,
            expected_price_wei=policy.cap_wei,
        )


def outbid(*, attempt: Attempt, fees: Fees) -> Fees | None:
    """
    Return `fees`, raised where needed to replace `attempt` in the nodes' pools; None if that exceeds the cap.

    An attempt that was never sent is in no pool and needs no raise.
    """
    return fees if attempt.first_sent_at is None else _raised(attempt=attempt, fees=fees)


def dearer(*, attempt: Attempt, fees: Fees) -> Fees | None:
    """
    Return what may pass where `attempt` was too cheap: `fees`, or an eighth more than it; None above the cap.

    Today's fees do not suffice at a node that wants a larger tip, or that holds
    another transaction on the account nonce.
    """
    offer = outbid(attempt=attempt, fees=fees)
    if offer is None or offer.max_fee_per_gas_wei > attempt.max_fee_per_gas_wei:
        return offer
    return _raised(attempt=attempt, fees=fees)


def _raised(*, attempt: Attempt, fees: Fees) -> Fees | None:
    offered = Fees(
        max_fee_per_gas_wei=attempt.max_fee_per_gas_wei,
        max_priority_fee_per_gas_wei=attempt.max_priority_fee_per_gas_wei,
        expected_price_wei=attempt.max_fee_per_gas_wei,
    )
    bumped = bump(offered, cap_wei=get_chain().fees.cap_wei)
    if bumped is None:
        return None
    highest = max(bumped.max_fee_per_gas_wei, fees.max_fee_per_gas_wei)
    tip = max(bumped.max_priority_fee_per_gas_wei, fees.max_priority_fee_per_gas_wei)
    return Fees(highest, min(tip, highest), max(fees.expected_price_wei, bumped.expected_price_wei))
