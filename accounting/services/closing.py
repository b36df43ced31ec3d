"""
Months: prepared from the rows of all apps and from Stripe, then closed by two people, once and in order.

Preparing replaces the sheets of an open month. It reads only rows that do not change any more, so after its end a month
always gives the same sheets, unless gas rates are added.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from accounting import queries
from accounting.errors import MonthNotReady
from accounting.models import Month, MonthSheet, next_month
from accounting.services import coins, sheets, ties
from accounting.services.figures import Figures, GasMoney, figures, gas_money
from accounting.services.sheets import Sheet
from credits.lots import RULE_VERSION
from gateway.common.leases import try_lease
from gateway.common.tasks import enqueue_on_commit
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import Done, Kind, RequestOutdated
from gateway.staff.models import ApprovalRequest
from users.models import User

logger = logging.getLogger(__name__)
# How long after its end a month can be closed: by then, Stripe's last events of the month have arrived.
SETTLED_AFTER = timedelta(hours=24)
_MOST_DAYS_NAMED = 5


def begin(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def request_sheets(*, begins_on: date, now: datetime) -> Month:
    """
    Let a worker prepare the month, even if it was prepared before. Joins the caller's transaction.

    Raises:
        MonthNotReady: the month is closed or has not begun, or an earlier month is missing.
    """
    first = Month.objects.order_by("begins_on").first()
    if begin(begins_on) > now:
        raise MonthNotReady("This month has not begun.")
    if not queries.has_entries(until=begin(next_month(begins_on))):
        raise MonthNotReady("There were no credits in this month.")
    if first is not None and begins_on < first.begins_on:
        raise MonthNotReady(f"The books begin with {first}.")
    with transaction.atomic():
        month, _ = Month.objects.get_or_create(begins_on=begins_on)
        waiting = Month.objects.filter(pk=month.pk).exclude(status=Month.Status.CLOSED)
        if not waiting.update(status=Month.Status.PREPARING):
            raise MonthNotReady("The month is closed. Post corrections in a later month.")
        enqueue_on_commit("accounting.prepare_months")
    month.refresh_from_db()
    return month


def request_again(*, days: Iterable[date]) -> list[Month]:
    """Let a worker prepare the open months of these days again. Joins the caller's transaction."""
    begins = {day.replace(day=1) for day in days}
    months = list(Month.objects.filter(status=Month.Status.OPEN, begins_on__in=begins).order_by("begins_on"))
    Month.objects.filter(pk__in=[month.pk for month in months], status=Month.Status.OPEN).update(
        status=Month.Status.PREPARING
    )
    if months:
        enqueue_on_commit("accounting.prepare_months")
    return months


def prepare_waiting(*, now: datetime) -> int:
    """Prepare the months that wait, oldest first; return how many. One process at a time does this."""
    done = 0
    with try_lease("accounting.prepare") as acquired:
        waiting = (
            Month.objects.filter(status=Month.Status.PREPARING).order_by("begins_on") if acquired else ()
        )
        for month in waiting:
            prepare(month=month, now=now)
            done += 1
    return done


def prepare(*, month: Month, now: datetime) -> None:
    """
    Compute the month's sheets and store them.

    Raises:
        BillingUnavailable: Stripe did not respond; the month keeps waiting.
    """
    since, until = begin(month.begins_on), min(begin(month.ends_on), now)
    statement = ties.Statement()
    if settings.STRIPE_SECRET_KEY:
        statement = ties.read(since=since, until=until, now=now)
    totals = figures(since=since, until=until)
    prices = queries.rates(since=month.begins_on, until=month.ends_on)
    money = gas_money(totals, rates=prices)
    of_coins = queries.rates_of_coins(since=month.begins_on, until=month.ends_on)
    by_coin = coins.coins_of(totals, money, rates=of_coins, since=since, until=until)
    before = Month.objects.filter(begins_on__lt=month.begins_on).order_by("-begins_on").first()
    stored = before.closing.get("deferred", {}) if before and before.status == Month.Status.CLOSED else {}
    tables = _sheets(totals, money, statement, stored, prices, since=since, until=until, now=now)
    tables += [coins.coins_sheet(by_coin), coins.relayers_sheet(by_coin)]
    closing = {
        "deferred": {key[1]: totals.closing[key] for key in totals.names("deferred")},
        **{kind: totals.closing["left", kind] - totals.closing["erased", kind] for kind in ("paid", "given")},
        "debt": sum(totals.closing[key] for key in totals.names("debt")) - totals.closing["erased", "debt"],
    }
    problems = [
        *_problems(month, before, totals, money, until=until, now=now),
        *coins.problems_of(by_coin),
    ]
    with transaction.atomic(durable=True):
        month.sheets.all().delete()
        MonthSheet.objects.bulk_create(_parts(month, tables))
        Month.objects.filter(pk=month.pk, status=Month.Status.PREPARING).update(
            status=Month.Status.OPEN,
            rule_version=RULE_VERSION,
            figures_until=until,
            prepared_at=now,
            problems=problems,
            differences="\n".join(_differences(tables)),
            closing=closing,
            digest=digest_of(month),
        )
    logger.info("month %s is prepared: %s problems", month, len(problems))


def _sheets(
    totals: Figures,
    money: GasMoney,
    statement: ties.Statement,
    stored: dict[str, int],
    prices: Any,
    *,
    since: datetime,
    until: datetime,
    now: datetime,
) -> list[Sheet]:
    latest_sales = list(queries.sales(until=now).values())
    sold = [sale for sale in latest_sales if since <= sale.created_at < until]
    known = [sale for sale in latest_sales if sale.created_at < until]
    opening, closing = (queries.returned(until=moment) for moment in (since, until))
    moved = queries.returned_in_order(since=since - ties.LOOKBACK, until=now)
    return [
        sheets.liability(totals, stored),
        sheets.credits_of_kinds(totals),
        sheets.entries(totals),
        sheets.payouts(sold),
        sheets.returns(known, opening, closing),
        sheets.tax(sold, known, opening, closing),
        sheets.stripe(statement),
        sheets.tied("charges", ties.tie_charges(statement, sold=sold, known=latest_sales, since=since)),
        sheets.tied(
            "refunds and disputes",
            ties.tie_returns(statement, known=latest_sales, rows=moved, since=since, until=until),
        ),
        sheets.gas(totals, money, prices),
        sheets.sources(totals, money),
        sheets.people(totals, money),
        sheets.movements(statement),
    ]


def _problems(
    month: Month, before: Month | None, totals: Figures, money: GasMoney, *, until: datetime, now: datetime
) -> list[str]:
    """Return the reasons why the month cannot be closed, as sentences."""
    problems = [*totals.differences]
    if now < begin(month.ends_on) + SETTLED_AFTER:
        problems.append(
            "The month can be closed a day after its end, when Stripe's last events have arrived."
        )
    if before is not None and (before.status != Month.Status.CLOSED or before.ends_on != month.begins_on):
        problems.append("Close the month before it first.")
    if money.missing:
        named = ", ".join(
            f"{day} in {currency.upper()}" for day, currency in money.missing[:_MOST_DAYS_NAMED]
        )
        more = len(money.missing) - _MOST_DAYS_NAMED
        others = f" and {more} more, which the table Gas shows without a price" if more > 0 else ""
        problems.append(f"Rates of the coin are missing: {named}{others}.")
    if waiting := queries.waiting_events(until=until):
        problems.append(f"{waiting} events of Stripe are not applied.")
    return problems


def _differences(tables: Iterable[Sheet]) -> Iterator[str]:
    """Yield a line for each sum that differs from Stripe's, or that has payments which differ."""
    for table in tables:
        if table.columns[-2][0] != sheets.DIFFERENCE:
            continue
        for currency, *_, minor, what in table.rows:
            if minor or what:
                yield f"{table.name}, {currency.upper()}: {Decimal(minor).scaleb(-2)}. {what}"


def _parts(month: Month, tables: Iterable[Sheet]) -> list[MonthSheet]:
    return [
        MonthSheet(
            month=month,
            name=table.name,
            place=place,
            part=part,
            columns=[list(column) for column in table.columns],
            rows=table.rows[start : start + MonthSheet.PART_ROWS],
        )
        for place, table in enumerate(tables)
        for part, start in enumerate(range(0, max(1, len(table.rows)), MonthSheet.PART_ROWS))
    ]


def digest_of(month: Month) -> str:
    """Return the SHA-256 of the month's stored sheets."""
    digest = hashlib.sha256(str(month).encode())
    parts = MonthSheet.objects.filter(month=month).order_by("place", "part")
    for part in parts.values_list("name", "columns", "rows").iterator(chunk_size=10):
        digest.update(json.dumps(part, sort_keys=True).encode())
    return digest.hexdigest()


# --- Closing


def request_close(
    *, month: Month, actor: User, reason: str, key: str, explanation: str = ""
) -> ApprovalRequest:
    """
    Request closing the month with its current sheets; a second person decides.

    `explanation` names the reason of each difference from Stripe. A repeated key returns the first request.

    Raises:
        MonthNotReady: the month is closed, not prepared, or has problems, or its differences are not explained.
        PermissionDenied, ReasonRequired, RequestConflict: see `approvals.ask`.
    """
    _require_ready(month)
    explanation = explanation.strip() if month.differences else ""
    if month.differences and not explanation:
        raise MonthNotReady(f"Give the reason of each difference: {month.differences}")
    return approvals.ask(
        kind=CLOSE,
        actor=actor,
        reason=reason,
        key=key,
        row=month,
        payload={"digest": month.digest, "explanation": explanation},
        changes={
            "status": (month.status, Month.Status.CLOSED),
            "digest": ("", month.digest),
            **({"differences": (month.differences, explanation)} if explanation else {}),
        },
    )


def _require_ready(month: Month) -> None:
    if month.status != Month.Status.OPEN:
        raise MonthNotReady(f"{month}: {month.get_status_display().lower()}.")
    if month.problems:
        raise MonthNotReady(" ".join(month.problems))


def _close(approval: ApprovalRequest) -> Done:
    month = Month.objects.select_for_update().get(pk=approval.object_id)
    wanted = approval.payload["digest"]
    if month.digest != wanted or digest_of(month) != wanted:
        raise RequestOutdated("The month has been prepared again. Reject the request and make a new one.")
    _require_ready(month)
    Month.objects.filter(pk=month.pk).update(
        status=Month.Status.CLOSED,
        closed_at=Now(),
        approval=approval,
        # A request that the previous version made has none.
        explanation=approval.payload.get("explanation", ""),
    )
    return Done(f"{month} is closed.", month)


CLOSE = approval_kinds.register(
    Kind(
        name="close_month",
        title="Close a month",
        asks="accounting.close_month",
        decides="accounting.decide_month",
        carry_out=_close,
    )
)
