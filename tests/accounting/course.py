"""The course of random months: people act, time passes, and finance and operations close each month."""

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise

from django.db.models import Count

from accounting.models import Month
from credits.models import CreditEntry
from payments.models import Payout, Purchase, StripeEvent
from tests.accounting.books import Sums, expired_in_time, month_ties, months_tie, paid_once
from tests.accounting.timeline import months
from tests.accounting.world import World


def close_months(world: World, count: int, *, moves: int) -> list[Month]:
    """Let as many months pass with so many acts each; close each one and compare it with everything."""
    closed: list[Month] = []
    books: Sums = Counter()
    for begins, ends in pairwise(months(world.now, count)):
        _live(world, moves, until=ends - timedelta(hours=2))
        world.end_month()
        world.move_to(ends + timedelta(hours=world.chance.randint(25, 40)))
        expired_in_time(world)
        month = world.prepare(begins)
        assert month.problems == []
        closed.append(world.close(month))
        books = month_ties(world, closed[-1], begins, ends, books)
        print(f"{closed[-1]} is closed: {_figures(world)}", flush=True)  # noqa: T201
    months_tie(closed)
    paid_once(world)
    return closed


def _live(world: World, moves: int, *, until: datetime) -> None:
    most = 2 * max(1, int((until - world.now).total_seconds())) // moves
    for _ in range(moves):
        world.move_to(min(until, world.now + timedelta(seconds=world.chance.randint(1, most))))
        world.live()


def _figures(world: World) -> dict[str, int]:
    tried = Purchase.objects.filter(top_up__isnull=False).exclude(failure_code="").values_list("failure_code")
    failed = dict(tried.annotate(count=Count("pk")).order_by("failure_code"))
    return {
        "payouts": Payout.objects.count(),
        "entries": CreditEntry.objects.count(),
        "events": StripeEvent.objects.count(),
        **world.counts,
        **{f"top-up failed: {code}": count for code, count in failed.items()},
    }
