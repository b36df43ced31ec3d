"""What support and finance see of payments: everything. What they may do is in `actions`."""

import re
from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from gateway.common.admin import OwnedRows, ReadOnlyAdmin
from gateway.common.exports import Column, Exportable
from gateway.common.fields import checksum
from gateway.common.filters import one_of
from gateway.common.staff_actions import ReasonedActions
from payments.admin import actions
from payments.models import (
    BillingOperation,
    Clawback,
    Customer,
    Payout,
    ReconciliationRun,
    StripeEvent,
    Subscription,
)
from payments.services import facts

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_CURRENCY = one_of("currency", lambda: settings.BILLING_CURRENCIES)
_TYPE = one_of("type", lambda: facts.EVENT_TYPES)


class PaymentsAdmin(OwnedRows):
    """
    Rows found by a whole Stripe id or by the whole address of the owner's profile.

    `stripe_ids` names the field for each prefix of an id, so that a search reads one index.
    """

    owner_path = "user"
    stripe_ids: ClassVar[dict[str, str]] = {}
    # Makes the search box appear; what it finds is decided below.
    search_fields = ("pk",)
    search_help_text = "A profile address, or an id of Stripe's (cus_…, sub_…, in_…, pi_…); whole."
    ordering = ("-pk",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        wanted = self.place_of(term)
        return queryset.filter(**wanted) if wanted else queryset.none(), False

    def place_of(self, term: str) -> dict[str, object]:
        """Return the one field to look for the term in; nothing where no field of ours holds such ids."""
        if self.owner_path and _ADDRESS.fullmatch(term):
            return {f"{self.owner_path}__profile_address": checksum(term)}
        path = self.stripe_ids.get(term.split("_", 1)[0])
        return {path: term} if path else {}


@admin.register(Customer)
class CustomerAdmin(PaymentsAdmin):
    stripe_ids = {"cus": "stripe_customer_id"}
    list_display = ("stripe_customer_id", "profile", "created_at", "heard_at")
    list_select_related = ("user",)


@admin.register(Subscription)
class SubscriptionAdmin(ReasonedActions, PaymentsAdmin):
    staff_actions = (actions.CANCEL_SUBSCRIPTION,)
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
        "currency",
        "current_period_end",
        "cancels_at_period_end",
        "synced_at",
    )
    list_filter = ("status", _CURRENCY, "cancels_at_period_end")
    list_select_related = ("user",)


@admin.register(Payout)
class PayoutAdmin(Exportable, PaymentsAdmin):
    export_columns = (
        Column("payout", "pk"),
        Column("profile", "user__profile_address"),
        Column("invoice", "stripe_invoice_id"),
        Column("payment intent", "stripe_payment_intent_id"),
        Column("subscription", "subscription__stripe_subscription_id"),
        Column("amount in minor units", "amount_minor"),
        Column("currency", "currency"),
        Column("credits", "credits"),
        Column("period start", "period_start"),
        Column("period end", "period_end"),
        Column("at", "created_at"),
    )
    stripe_ids = {
        "in": "stripe_invoice_id",
        "pi": "stripe_payment_intent_id",
        "sub": "subscription__stripe_subscription_id",
        "cus": "subscription__customer__stripe_customer_id",
    }
    list_display = (
        "stripe_invoice_id",
        "profile",
        "amount_minor",
        "currency",
        "credits",
        "period_start",
        "period_end",
        "created_at",
    )
    list_filter = (_CURRENCY,)
    list_select_related = ("user",)


@admin.register(Clawback)
class ClawbackAdmin(PaymentsAdmin):
    owner_path = "payout__user"
    stripe_ids = {"in": "payout__stripe_invoice_id", "pi": "payout__stripe_payment_intent_id"}
    list_display = ("key", "profile", "payout", "credits", "created_at")
    list_select_related = ("payout__user",)


@admin.register(BillingOperation)
class BillingOperationAdmin(PaymentsAdmin):
    search_help_text = (
        "A profile address, or the operation's id, which is its idempotency key at Stripe; whole."
    )
    list_display = ("id", "profile", "kind", "status", "outcome", "attempts", "created_at", "finished_at")
    list_filter = ("status", "kind")
    list_select_related = ("user",)
    ordering = ("-created_at",)

    def place_of(self, term: str) -> dict[str, object]:
        try:
            return {"pk": UUID(term)}
        except ValueError:
            return super().place_of(term)


@admin.register(StripeEvent)
class StripeEventAdmin(ReasonedActions, PaymentsAdmin):
    """The inbox. A failed event is tried again by itself; staff may have it tried now, or not any more."""

    owner_path = ""
    search_help_text = "An event's id (evt_…), or the id of what it is about; whole."
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
    staff_actions = (actions.PROCESS_AGAIN, actions.DISMISS)

    def place_of(self, term: str) -> dict[str, object]:
        return {"stripe_event_id" if term.startswith("evt_") else "object_id": term}


@admin.register(ReconciliationRun)
class ReconciliationRunAdmin(ReasonedActions, ReadOnlyAdmin):
    """The findings of `reconcile_payments`, by hand or by night."""

    list_display = ("started_at", "finished_at", "kind", "result")
    list_defer = ("findings",)
    ordering = ("-started_at",)
    staff_actions = (actions.RUN_RECONCILIATION,)

    @admin.display(description="result")
    def result(self, run: ReconciliationRun) -> str:
        if run.finished_at is None:
            return "unfinished"
        return f"{run.counts.get('findings', 0)} findings"
