"""Clawbacks against the money that went back, whether or not we were told."""

from collections import Counter
from collections.abc import Iterator

from django.db.models import Q

from payments.models import Payout
from payments.services import clawbacks, payout_experience
from payments.services.reconciliation.findings import Finding, Rule, Window, pages
from payments.stripe.client import get_billing_client


def compare(*, window: Window, counts: Counter[str]) -> Iterator[Finding]:
    """Yield payouts of which more or less was taken back than the formula asks for now."""
    looked_at: set[str] = set()
    client = get_billing_client()
    for page in pages(client.payments_gone_back_since(since=window.money_since)):
        yield from _of(Q(stripe_payment_intent_id__in=set(page) - looked_at), counts)
        looked_at |= set(page)
    taken_back = Payout.objects.filter(clawbacks__created_at__gte=window.money_since)
    rest = taken_back.exclude(stripe_payment_intent_id__in=looked_at).values_list("pk", flat=True).distinct()
    for some in pages(rest):
        yield from _of(Q(pk__in=some), counts)


def _of(chosen: Q, counts: Counter[str]) -> Iterator[Finding]:
    for payout in Payout.objects.filter(chosen).exclude(stripe_payment_intent_id="").order_by("pk"):
        counts["payments gone back"] += 1
        money = get_billing_client().money_back(payment_intent_id=payout.stripe_payment_intent_id)
        wanted = clawbacks.target(payout=payout, money=money)
        taken = payout.credits_taken_back()
        experience = payout_experience.steps(payout=payout, gone_minor=clawbacks.gone(money=money))
        if taken != wanted or any(experience.values()):
            left = ", ".join(f"{step} {track}" for track, step in experience.items())
            yield Finding(
                rule=Rule.CLAWBACK_SUM,
                have=f"{taken} of {payout.credits} credits taken back; experience still to take: {left}",
                wanted=f"{money.refunded_minor} refunded and {money.disputed_minor} disputed of "
                f"{payout.amount_minor} {payout.currency}, which is {wanted} credits",
                ids={"payment": payout.stripe_payment_intent_id, "invoice": payout.stripe_invoice_id},
            )
