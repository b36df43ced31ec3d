"""Compares our own rows with each other, by rules that no database constraint can enforce."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, QuerySet

from credits.models import Allowance, CreditEntry, EntrySource
from credits.queries import paid_period
from payments.amounts import display_amount, payout_credits
from payments.models import (
    BillingOperation,
    Clawback,
    Payout,
    PeriodTotals,
    Purchase,
    Refund,
    Settlement,
    StripeEvent,
    Subscription,
)
from payments.services.payouts import NEWEST_FIRST, paid_period_of
from payments.services.reconciliation.findings import Finding, Rule, Window, pages

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


# A ledger entry: the user or sponsor that owns its account, its source and its credits.
_Posting = tuple[int | None, int | None, str, int]


def compare_rows(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
    """Yield payouts, clawbacks, entries, allowances, events and operations that break a rule."""
    yield from _payouts(window)
    yield from _clawbacks(window)
    yield from _entries(window)
    yield from _allowances(counts)
    yield from _events(window)
    yield from _operations(window)
    yield from _failed_refunds()
    yield from _stuck_invoices(window)


def _payouts(window: Window) -> Iterator[Finding]:
    rows = window.of_payouts(Payout.objects.select_related("rate", "purchase"))
    for page in pages(rows.order_by("pk").iterator()):
        entries = _entries_by_id([payout.entry_id for payout in page])
        for payout in page:
            ids = {"payout": str(payout.pk), "invoice": payout.stripe_invoice_id}
            rate = payout.rate.credits_per_major_unit
            at_rate = payout_credits(collected_minor=payout.amount_minor, credits_per_major_unit=rate)
            at_rate += payout.bonus_credits
            if payout.credits != at_rate:
                wanted = f"{at_rate}: {payout.amount_minor} {payout.currency} at {rate} credits for 1.00"
                yield Finding(rule=Rule.PAYOUT_CREDITS, have=str(payout.credits), wanted=wanted, ids=ids)
            posting = (*_owner(payout), payout.source, payout.credits)
            yield from _entry_differences(Rule.PAYOUT_ENTRY, posting, entries.get(payout.entry_id), ids)


def _clawbacks(window: Window) -> Iterator[Finding]:
    rows = Clawback.objects.filter(created_at__gte=window.since, entry_id__isnull=False)
    for page in pages(rows.select_related("payout__purchase").order_by("pk").iterator()):
        entries = _entries_by_id([clawback.entry_id for clawback in page if clawback.entry_id])
        for clawback in page:
            ids = {"clawback": clawback.key, "invoice": clawback.payout.stripe_invoice_id}
            posting = (*_owner(clawback.payout), EntrySource.PAYOUT_CLAWBACK, -clawback.credits)
            entry = entries.get(clawback.entry_id or 0)
            yield from _entry_differences(Rule.CLAWBACK_ENTRY, posting, entry, ids)


def _entries(window: Window) -> Iterator[Finding]:
    for source, reverse in (
        (EntrySource.SUBSCRIBED_PAYOUT, "payout__isnull"),
        (EntrySource.CREDIT_PURCHASE, "payout__isnull"),
        (EntrySource.PAYOUT_CLAWBACK, "clawback__isnull"),
    ):
        rows = CreditEntry.objects.filter(source=source, created_at__gte=window.since, **{reverse: True})
        for entry in rows.order_by("pk").iterator():
            yield Finding(
                rule=Rule.ENTRY_WITHOUT_PAYOUT,
                have=f"{entry.amount} credits {source}",
                wanted="a payout or clawback that names it",
                ids={"entry": str(entry.pk), "key": entry.key},
            )


def _entries_by_id(entry_ids: list[int]) -> dict[int, CreditEntry]:
    return CreditEntry.objects.select_related("account").in_bulk(entry_ids)


def _owner(payout: Payout) -> tuple[int | None, int | None]:
    """Return the user or the sponsor that has the credits."""
    return (payout.user_id if payout.sponsor_id is None else None), payout.sponsor_id


def _entry_differences(
    rule: Rule, wanted: _Posting, entry: CreditEntry | None, ids: dict[str, str]
) -> Iterator[Finding]:
    posted = (entry.account.user_id, entry.account.sponsor_id, entry.source, entry.amount) if entry else None
    if posted != wanted:
        have = "no entry" if posted is None else _posting_text(posted)
        yield Finding(rule=rule, have=have, wanted=_posting_text(wanted), ids=ids)


def _posting_text(posting: _Posting) -> str:
    user_id, sponsor_id, source, amount = posting
    owner = f"user {user_id}" if sponsor_id is None else f"sponsor {sponsor_id}"
    return f"{amount:+d} {source} of {owner}"


def _allowances(counts: Counter[str]) -> Iterator[Finding]:
    for page in pages(_newest_payouts().iterator()):
        stored = {
            row.user_id: row for row in Allowance.objects.filter(user__in=[payout.user_id for payout in page])
        }
        for payout in page:
            counts["allowances"] += 1
            left = payout.period_paid_out - payout.period_taken_back
            wanted = paid_period_of(payout=payout, credits=left)
            row = stored.get(payout.user_id)
            have = paid_period(row) if row else None
            if have != wanted:
                yield Finding(
                    rule=Rule.ALLOWANCE,
                    have=str(have or "none"),
                    wanted=str(wanted),
                    ids={"user": str(payout.user_id), "invoice": payout.stripe_invoice_id},
                )
    subscribers = Payout.objects.filter(subscription__isnull=False).values("user")
    for row in Allowance.objects.exclude(user__in=subscribers).order_by("pk").iterator():
        ids = {"user": str(row.user_id)}
        yield Finding(rule=Rule.ALLOWANCE, have=str(paid_period(row)), wanted="no payout", ids=ids)


def _newest_payouts() -> "QuerySet[WithAnnotations[Payout, PeriodTotals]]":
    """Return the newest payout of each user, as `payouts.newest_payout` chooses it."""
    return (
        Payout.objects.filter(subscription__isnull=False)
        .select_related("subscription")
        .with_period()
        .order_by("user_id", *NEWEST_FIRST)
        .distinct("user_id")
    )


def _events(window: Window) -> Iterator[Finding]:
    waiting = StripeEvent.objects.exclude(status=StripeEvent.Status.PROCESSED)
    for event in waiting.filter(received_at__lt=window.settled_before).order_by("pk").iterator():
        yield Finding(
            rule=Rule.EVENT_FAILED,
            have=f"{event.status} after {event.attempts} attempts",
            wanted=event.last_error or "no error yet",
            ids={"event": event.stripe_event_id, "type": event.type, "object": event.object_id},
        )


def _operations(window: Window) -> Iterator[Finding]:
    pending = BillingOperation.objects.filter(status=BillingOperation.Status.PENDING)
    for operation in pending.filter(created_at__lt=window.settled_before).order_by("pk").iterator():
        yield _unfinished(operation.kind, operation, operation.user_id)
    # Purchases may wait for the card holder for almost a day.
    day_before = window.settled_before - timedelta(days=1)
    purchases = Purchase.objects.filter(status=Purchase.Status.OPEN, created_at__lt=day_before)
    for purchase in purchases.order_by("pk").iterator():
        yield _unfinished("purchase", purchase, purchase.user_id)
    refunds = Refund.objects.filter(status=Refund.Status.PENDING, created_at__lt=day_before)
    for refund in refunds.select_related("payout").order_by("pk").iterator():
        yield _unfinished("refund", refund, refund.payout.user_id)


def _failed_refunds() -> Iterator[Finding]:
    """Yield refunds that the payer's bank returned, until the money was returned in another way."""
    after_all = Clawback.objects.filter(
        payout=OuterRef("payout"), credits__gt=0, created_at__gt=OuterRef("finished_at")
    )
    failed = Refund.objects.filter(~Exists(after_all), status=Refund.Status.FAILED)
    for refund in failed.select_related("payout").order_by("pk").iterator():
        amount = display_amount(amount_minor=refund.amount_minor, currency=refund.payout.currency)
        yield Finding(
            rule=Rule.REFUND_FAILED,
            have=refund.last_error,
            wanted=f"{amount} returned",
            ids={"refund": str(refund.pk), "user": str(refund.payout.user_id)},
        )


def _unfinished(noun: str, row: BillingOperation | Purchase | Refund, user_id: int) -> Finding:
    return Finding(
        rule=Rule.OPERATION_UNFINISHED,
        have=f"{noun} pending since {row.created_at:%Y-%m-%d %H:%M}",
        wanted="unknown",
        ids={"operation": str(row.pk), "user": str(user_id)},
    )


def _stuck_invoices(window: Window) -> Iterator[Finding]:
    waiting = Subscription.objects.live().filter(latest_invoice__in=Settlement.waiting())
    for row in waiting.select_related("customer").order_by("pk").iterator():
        stuck = row.stuck_invoice(window.settled_before)
        # An invoice that was sent has its own due date; Stripe reports the subscription as past due after it.
        if stuck is not None and not (stuck == Settlement.WAITING and row.is_invoiced):
            yield Finding(
                rule=Rule.INVOICE_STUCK,
                have=f"active since {row.current_period_start:%Y-%m-%d}, {stuck.label}",
                wanted="paid, or past due",
                ids={
                    "subscription": row.stripe_subscription_id,
                    "customer": row.customer.stripe_customer_id,
                },
            )
