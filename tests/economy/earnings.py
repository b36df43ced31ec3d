"""Earnings on paper: credited at once or held, capped, reversed before or after."""

from datetime import datetime, timedelta
from fractions import Fraction
from math import floor, inf
from typing import NamedTuple

from tests.economy.paper import PERMANENT, PaperAccount, PaperEarning, bonus_on


class PaperNetwork(NamedTuple):
    """A network's terms."""

    slug: str
    source: str
    rate: Fraction
    hold_hours: int = 0
    daily_cap: int | None = None
    reverses: bool = True
    # Its reversals take back the amount that they tell.
    corrects: bool = False


# One of each kind; the second gives a day later, the third no more than so much a day.
NETWORKS = (
    PaperNetwork("levelplay", "VIDEO_ADS", Fraction(5, 2)),
    PaperNetwork("bitlabs", "SURVEYS", Fraction(3, 4), hold_hours=24, corrects=True),
    PaperNetwork("adgem", "OFFERWALL", Fraction(11, 10), daily_cap=150),
    PaperNetwork("visit-link", "PUSH_ADS", Fraction(5), reverses=False),
)


def credit(account: PaperAccount, network: PaperNetwork, number: int, amount: int, now: datetime) -> None:
    """Hear that the user earned an amount; the first word counts."""
    earning = account.earnings.setdefault((network.slug, number), PaperEarning())
    if earning.state is not None:
        return
    bonus = account.bonus(bonus_on(network.source), now)
    earning.amount, earning.factor = amount, network.rate * (1 + bonus)
    earning.credits = floor(amount * earning.factor)
    earning.received_at = now
    if earning.taken >= amount:
        earning.state = "REVERSED"
    elif network.daily_cap is not None and _of_the_day(account, network, now) > network.daily_cap:
        earning.state = "REFUSED"
    elif network.hold_hours:
        earning.state, earning.due_at = "HELD", now + timedelta(hours=network.hold_hours)
    else:
        _give(account, network, earning)


def reverse(account: PaperAccount, network: PaperNetwork, number: int, amount: int) -> None:
    """Hear that the earning is taken back, once; it may not have come yet."""
    earning = account.earnings.setdefault((network.slug, number), PaperEarning())
    if earning.is_reversed:
        return
    earning.is_reversed = True
    before = earning.kept
    earning.taken = amount if network.corrects else inf
    lost = before - earning.kept
    if earning.state == "AVAILABLE" and lost:
        account.post(-lost, "EARNING_REVERSAL")
        if unlearned := earning.gained * lost // before:
            account.move_experience(PERMANENT, -unlearned)
    if earning.state in {"AVAILABLE", "HELD"} and earning.taken >= earning.amount:
        earning.state = "REVERSED"


def release_due(account: PaperAccount, now: datetime) -> None:
    """Give what was held until now, in the order in which it is due."""
    held = [
        (earning.due_at, place, slug, earning)
        for place, ((slug, _), earning) in enumerate(account.earnings.items())
        if earning.state == "HELD" and earning.due_at is not None and earning.due_at <= now
    ]
    for _, _, slug, earning in sorted(held, key=lambda found: found[:2]):
        _give(account, next(network for network in NETWORKS if network.slug == slug), earning)


def _give(account: PaperAccount, network: PaperNetwork, earning: PaperEarning) -> None:
    earning.state = "AVAILABLE"
    if earning.kept:
        account.post(earning.kept, network.source)
        earning.gained = account.gain(PERMANENT, earning.kept)


def _of_the_day(account: PaperAccount, network: PaperNetwork, now: datetime) -> int:
    """Return what the user earned there since midnight, with the one that is being heard."""
    return sum(
        earning.credits
        for (slug, _), earning in account.earnings.items()
        if slug == network.slug
        and (earning.state in {None, "AVAILABLE", "HELD"})
        and earning.received_at is not None
        and earning.received_at.date() == now.date()
    )
