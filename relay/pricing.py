"""
The cost of a relay call in credits.

One credit is `credit_wei` wei of gas spend. Costs round up, once, in the
service's favour. All arguments are whole numbers: gas in units, prices in wei.
"""


def cost_in_credits(*, gas: int, price_wei: int, credit_wei: int) -> int:
    """Return `ceil(gas * price / credit_wei)`."""
    return -(-gas * price_wei // credit_wei)


def gas_limit_for(*, estimate: int) -> int:
    """
    Return the gas limit to sign for an estimate: 15 % above it.

    The margin covers state that changes between estimate and execution. Unused
    gas is not paid for, so the margin only enlarges the hold.
    """
    return estimate + -(-estimate * 15 // 100)
