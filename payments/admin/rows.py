"""The lists of payments, searched by a complete Stripe id or a profile, and the actions of staff."""

from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from unfold.widgets import UnfoldBooleanSwitchWidget

from gateway.admin import columns
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions, ReasonForm
from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import AppendOnlyAdmin, OwnedRows, one_of
from gateway.admin.exports import Column, Exportable
from gateway.admin.search import people_like
from gateway.common import clock
from gateway.staff.approval_kinds import AboveCeiling
from gateway.staff.form_kinds import form_kind
from payments.admin.refunds import SEND_AGAIN, Refundable
from payments.amounts import display_amount
from payments.models import (
    BillingOperation,
    Clawback,
    Customer,
    Payout,
    PayoutRate,
    Refund,
    StripeEvent,
    Subscription,
)
from payments.queries import Effect, effect_of_rate, rates_in_force
from payments.services import events, subscriptions
from payments.services.snapshots import EVENT_TYPES

_S = Subscription.Status
columns.colour("good", _S.ACTIVE, StripeEvent.Status.PROCESSED, BillingOperation.Status.DONE)
columns.colour("bad", _S.PAST_DUE, _S.UNPAID, StripeEvent.Status.FAILED, BillingOperation.Status.REFUSED)
columns.colour("waiting", _S.INCOMPLETE, StripeEvent.Status.RECEIVED, BillingOperation.Status.PENDING)
columns.describe(
    {
        _S.INCOMPLETE: "Waiting for the first payment",
        _S.INCOMPLETE_EXPIRED: "Never paid",
        _S.PAST_DUE: "Last payment failed",
        _S.CANCELED: "Ended",
    }
)
_CURRENCY = one_of("currency", lambda: settings.BILLING_CURRENCIES, word=str.upper)
_TYPE = one_of("type", lambda: EVENT_TYPES)


def _process_again(row: StripeEvent, decision: Decision) -> str:
    count = events.process_again(events=StripeEvent.objects.filter(pk=row.pk), now=clock.now())
    return "It will be processed now." if count else "It has been processed in the meantime."


PROCESS_AGAIN = ReasonedAction(
    name="process_again",
    label="Process again",
    permission="payments.process_stripeevent",
    effect=lambda row: "Its object is read from Stripe again and applied now. Nothing is applied twice.",
    run=_process_again,
    applies_to=lambda row: row.status != StripeEvent.Status.PROCESSED,
)


def _dismiss(row: StripeEvent, decision: Decision) -> str:
    dismissed = events.dismiss(event_id=row.pk, now=clock.now())
    return "It will not be retried." if dismissed else "It has been processed in the meantime."


DISMISS = ReasonedAction(
    name="dismiss",
    label="Dismiss",
    permission="payments.dismiss_stripeevent",
    effect=lambda row: (
        f"It will not be retried or applied. Last error, after {row.attempts} attempts: {row.last_error}"
    ),
    run=_dismiss,
    applies_to=lambda row: row.status == StripeEvent.Status.FAILED,
)


class CancelForm(ReasonForm):
    immediately = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Ends the allowance at once, without a refund. Otherwise it ends with the current period.",
    )
    field_order = ("immediately", "reason")


def _cancel(row: Subscription, decision: Decision) -> str:
    subscription = subscriptions.cancel(
        user=row.user, immediately=decision.inputs["immediately"], now=clock.now()
    )
    return (
        f"It is now {subscription.get_status_display()}."
        if decision.inputs["immediately"]
        else "It ends with the current period."
    )


CANCEL_SUBSCRIPTION = ReasonedAction(
    name="cancel",
    label="Cancel the subscription",
    permission="payments.cancel_subscription",
    effect=lambda row: (
        "The subscription is cancelled at Stripe, at the end of its period "
        f"({row.current_period_end:%Y-%m-%d %H:%M} UTC) or at once. The user keeps all credits."
    ),
    run=_cancel,
    form=CancelForm,
    reaches_out=True,
    applies_to=lambda row: row.status not in Subscription.ENDED,
)


def _check_rate(rate: PayoutRate) -> None:
    if rate.credits_per_major_unit > settings.CEILING_PAYOUT_RATE:
        raise AboveCeiling(f"The ceiling is {settings.CEILING_PAYOUT_RATE:,} credits for 1.00.")


class PayoutRateAdmin(ApprovedForm, AppendOnlyAdmin):
    """
    Payout rates. A new rate needs approval; a rate is never changed or deleted.

    `accounting` registers this admin, because the form also shows the prices of gas and the coin.
    """

    saves = form_kind(
        name="add_payout_rate",
        title="Add a payout rate",
        model=PayoutRate,
        asks="payments.add_payoutrate",
        decides="payments.decide_payoutrate",
        check=_check_rate,
    )
    preview_template = "payments/rate_preview.html"
    list_display = (
        "currency",
        "credits_per_major_unit",
        "experience_per_minor_unit",
        "valid_from",
        "created_at",
    )
    list_filter = (_CURRENCY,)
    ordering = ("currency", "-valid_from")

    def form_context(self, request: HttpRequest, row: PayoutRate | None) -> dict[str, Any]:
        rates = [] if row else rates_in_force(now=clock.now())
        return {**super().form_context(request, row), "rates": rates}

    def preview_of(self, form: ModelForm[PayoutRate]) -> Effect:
        return effect_of_rate(rate=form.instance)


class PaymentsAdmin(OwnedRows):
    """
    Rows that can be searched by a complete Stripe id, an invoice's number, or the owner's profile.

    `stripe_ids` maps the prefix of an id to its field, so that a search reads one index.
    """

    owner_path = "user"
    stripe_ids: ClassVar[dict[str, str]] = {}
    invoice_path: ClassVar[str] = ""
    # Shows the search box; `filter_for` implements the search.
    search_fields = ("pk",)
    search_help_text = "A profile, an invoice's number, or a complete Stripe id (cus_…, sub_…, in_…, pi_…)."
    ordering = ("-pk",)

    def find_rows(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        lookup = self.filter_for(term)
        return rows.filter(**lookup) if lookup else rows.none()

    def filter_for(self, term: str) -> dict[str, object]:
        """Return the filter for the term; empty if no field of this model holds ids of its form."""
        people = people_like(term) if self.owner_path else []
        if people:
            return {f"{self.owner_path}__in": people}
        if self.invoice_path and Payout.NUMBER.fullmatch(term.upper()):
            return {self.invoice_path: term.upper()}
        path = self.stripe_ids.get(term.split("_", 1)[0])
        return {path: term} if path else {}


@admin.register(Customer)
class CustomerAdmin(PaymentsAdmin):
    stripe_ids = {"cus": "stripe_customer_id"}
    list_display = ("stripe_customer_id", "profile", "created_at", "last_synced_at", "deleted_at")
    list_select_related = ("user",)


@admin.register(Subscription)
class SubscriptionAdmin(ReasonedActions, PaymentsAdmin):
    staff_actions = (CANCEL_SUBSCRIPTION,)
    stripe_ids = {
        "sub": "stripe_subscription_id",
        "si": "stripe_item_id",
        "cus": "customer__stripe_customer_id",
    }
    list_display = (
        "stripe_subscription_id",
        "profile",
        "status",
        "amount_minor",
        "current_period_end",
        "cancels_at_period_end",
        "synced_at",
    )
    list_filter = ("status", _CURRENCY, "cancels_at_period_end")
    list_select_related = ("user",)


@admin.register(Payout)
class PayoutAdmin(Refundable, Exportable, PaymentsAdmin):
    export_columns = (
        Column("payout", "pk"),
        Column("profile", "user__profile_address"),
        Column("sponsor", "purchase__sponsor__slug"),
        Column("invoice", "stripe_invoice_id"),
        Column("invoice number", "invoice_number"),
        Column("payment intent", "stripe_payment_intent_id"),
        Column("subscription", "subscription__stripe_subscription_id"),
        Column("amount", "amount_minor", is_money=True),
        Column("tax", "tax_minor", is_money=True),
        Column("other products", "other_minor", is_money=True),
        Column("refunded", "refunded_minor", is_money=True),
        Column("disputed", "disputed_minor", is_money=True),
        Column("currency", "currency"),
        Column("country", "country"),
        Column("credits", "credits"),
        Column("period start", "period_start"),
        Column("period end", "period_end"),
        Column("at", "created_at"),
    )
    invoice_path = "invoice_number"
    stripe_ids = {
        "in": "stripe_invoice_id",
        "pi": "stripe_payment_intent_id",
        "sub": "subscription__stripe_subscription_id",
        "cus": "subscription__customer__stripe_customer_id",
    }
    list_display = (
        "stripe_invoice_id",
        "invoice_number",
        "profile",
        "amount_minor",
        "tax_minor",
        "credits",
        "period_start",
        "period_end",
        "created_at",
    )
    list_filter = (_CURRENCY,)
    list_select_related = ("user",)


@admin.register(Clawback)
class ClawbackAdmin(Exportable, PaymentsAdmin):
    export_columns = (
        Column("clawback", "pk"),
        Column("profile", "payout__user__profile_address"),
        Column("payout", "payout_id"),
        Column("invoice", "payout__stripe_invoice_id"),
        Column("credits", "credits"),
        Column("entry", "entry_id"),
        Column("key", "key"),
        Column("at", "created_at"),
    )
    owner_path = "payout__user"
    invoice_path = "payout__invoice_number"
    stripe_ids = {"in": "payout__stripe_invoice_id", "pi": "payout__stripe_payment_intent_id"}
    list_display = ("key", "profile", "payout", "credits", "created_at")
    list_select_related = ("payout__user",)


@admin.register(Refund)
class RefundAdmin(ReasonedActions, Exportable, PaymentsAdmin):
    """Refunds requested by staff, or by payers who undid a purchase, and their state at Stripe."""

    export_columns = (
        Column("refund", "pk"),
        Column("profile", "payout__user__profile_address"),
        Column("payout", "payout_id"),
        Column("invoice", "payout__stripe_invoice_id"),
        Column("amount", "amount_minor", is_money=True),
        Column("currency", "payout__currency"),
        Column("status", "status"),
        Column("at Stripe", "outcome"),
        Column("requested by", "approval__requested_by__username"),
        Column("reason", "approval__reason"),
        Column("at", "created_at"),
        Column("finished at", "finished_at"),
    )

    staff_actions = (SEND_AGAIN,)
    owner_path = "payout__user"
    stripe_ids = {
        "in": "payout__stripe_invoice_id",
        "pi": "payout__stripe_payment_intent_id",
        "re": "outcome",
    }
    list_display = (
        "payout",
        "profile",
        "amount",
        "status",
        "outcome",
        "last_error",
        "created_at",
        "finished_at",
    )
    list_filter = ("status",)
    list_select_related = ("payout__user",)
    ordering = ("-created_at",)
    fields = readonly_fields = (
        "payout", "amount", "status", "outcome", "last_error", "attempts", "approval", "hold", "created_at",
        "finished_at",
    )  # fmt: skip

    @admin.display(description="amount", ordering="amount_minor")
    def amount(self, refund: Refund) -> str:
        return display_amount(amount_minor=refund.amount_minor, currency=refund.payout.currency)


@admin.register(BillingOperation)
class BillingOperationAdmin(PaymentsAdmin):
    search_help_text = (
        "A profile, or the complete id of the operation, which is its idempotency key at Stripe."
    )
    list_display = ("id", "profile", "kind", "status", "outcome", "attempts", "created_at", "finished_at")
    list_filter = ("status", "kind")
    list_select_related = ("user",)
    ordering = ("-created_at",)

    def filter_for(self, term: str) -> dict[str, object]:
        try:
            return {"pk": UUID(term)}
        except ValueError:
            return super().filter_for(term)


@admin.register(StripeEvent)
class StripeEventAdmin(ReasonedActions, PaymentsAdmin):
    """The inbox of events. A failed event is retried automatically; staff can process it now or dismiss it."""

    owner_path = ""
    search_help_text = "The complete id of an event (evt_…) or of its object."
    list_display = (
        "stripe_event_id",
        "type",
        "object_id",
        "status",
        "outcome",
        "attempts",
        "happened_at",
        "received_at",
        "next_attempt_at",
        "last_error",
    )
    list_filter = ("status", "outcome", _TYPE)
    exclude = ("raw_body",)
    list_defer = ("raw_body",)
    staff_actions = (PROCESS_AGAIN, DISMISS)

    def filter_for(self, term: str) -> dict[str, object]:
        return {"stripe_event_id" if term.startswith("evt_") else "object_id": term}
