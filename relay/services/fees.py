"""What to offer for gas when an attempt is signed after acceptance."""

from django.conf import settings

from gateway.chain.fees import Fees, FeesTooHigh, bump, quote_fees
from gateway.chain.states import Head
from relay.models import Attempt

# One gwei: what LUKSO's validators ask for at the most.
_TIP_WEI = 10**9


def fees_today(*, head: Head) -> Fees:
    """Return today's fees in wei; at the cap where the chain asks for more: what must end cannot wait for calm."""
    cap = settings.RELAY_FEE_CAP_WEI
    tip = min(cap, _TIP_WEI)
    try:
        return quote_fees(
            base_fee_wei=head.base_fee_wei, tip_wei=tip, floor_wei=settings.RELAY_FEE_FLOOR_WEI, cap_wei=cap
        )
    except FeesTooHigh:
        return Fees(max_fee_per_gas_wei=cap, max_priority_fee_per_gas_wei=tip, expected_price_wei=cap)


def outbid(*, attempt: Attempt, fees: Fees) -> Fees | None:
    """
    Return `fees`, raised where needed to replace `attempt` in the nodes' pools; None if that exceeds the cap.

    An attempt that was never sent stands in no pool and needs no raise.
    """
    if attempt.first_sent_at is None:
        return fees
    sent = Fees(
        max_fee_per_gas_wei=attempt.max_fee_per_gas_wei,
        max_priority_fee_per_gas_wei=attempt.max_priority_fee_per_gas_wei,
        expected_price_wei=attempt.max_fee_per_gas_wei,
    )
    dearer = bump(sent, cap_wei=settings.RELAY_FEE_CAP_WEI)
    if dearer is None:
        return None
    highest = max(dearer.max_fee_per_gas_wei, fees.max_fee_per_gas_wei)
    tip = max(dearer.max_priority_fee_per_gas_wei, fees.max_priority_fee_per_gas_wei)
    return Fees(highest, min(tip, highest), max(fees.expected_price_wei, dearer.expected_price_wei))
