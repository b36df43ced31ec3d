"""Prices of a credit: the first one of a chain from the settings, later ones from staff."""

from collections.abc import Mapping

from gateway.chain.config import get_chain, on_chain
from gateway.common import clock
from gateway.common.statements import Statements
from gateway.staff import approvals
from gateway.staff.approval_kinds import AboveCeiling
from relay.models import CreditPrice
from relay.queries.prices import current_price

# A price changes by less than this factor at once, because most larger changes are a slip of a digit.
_MOST_TIMES = 10


class Sql(Statements, file=__file__, carried_out=approvals.Sql.carried_out):
    # For the nightly comparison of prices with their causes.
    rules: str


def begin() -> None:
    """Store the current chain's first price, that of the settings, unless the chain has one."""
    chain = get_chain()
    first = CreditPrice(
        chain_id=chain.id, credit_wei=chain.first_credit_wei, valid_from=clock.now(), is_first=True
    )
    CreditPrice.objects.bulk_create([first], ignore_conflicts=True)


def require_plausible(price: CreditPrice) -> None:
    """
    Refuse a price that is ten times the one in force or more, or a tenth of it or less.

    Raises:
        AboveCeiling: the price is refused, whoever approves it.
    """
    with on_chain(price.chain_id):
        now_wei = current_price().credit_wei
    if not now_wei < price.credit_wei * _MOST_TIMES < now_wei * _MOST_TIMES**2:
        raise AboveCeiling(
            f"A price changes by less than {_MOST_TIMES} times at once; {now_wei} wei is in force."
        )


def put_in_force(price: CreditPrice, values: Mapping[str, str | None]) -> CreditPrice:
    """Store an approved price. From then on every process charges new calls at it."""
    price.full_clean()
    with on_chain(price.chain_id):
        begin()
    price.save(force_insert=True)
    return price
