"""
The cost of a relay call in credits.

One credit is `credit_wei` wei that a relayer spends. Costs round up, once, in the
service's favour. All arguments are whole numbers: gas in units, prices in wei.
"""


def credits_of(cost_wei: int, *, credit_wei: int) -> int:
    """Return `ceil(cost / credit_wei)`."""
    return -(-cost_wei // credit_wei)


# The margin above the estimate; it shrinks, to the least margin at most, if the maximum gas limit requires it.
_MARGIN_PERCENT, _LEAST_MARGIN_PERCENT = 15, 2


def gas_limit_for(*, estimate: int, maximum: int) -> int:
    """
    Return the gas limit to sign for an estimate: 15 % above it, at most `maximum`.

    The margin covers state that changes between estimate and execution. Unused
    gas is not paid for, so the margin only enlarges the hold. If the maximum
    leaves a margin of less than 2 %, the limit returned is above the maximum.
    """
    least = estimate + -(-estimate * _LEAST_MARGIN_PERCENT // 100)
    padded = estimate + -(-estimate * _MARGIN_PERCENT // 100)
    return min(padded, max(least, maximum))
