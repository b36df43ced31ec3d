"""The lists of packs, purchases and automatic top-ups; packs are added and changed after approval."""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest

from gateway.admin import columns
from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import StaffAdmin, one_of
from gateway.admin.exports import Column, Exportable
from gateway.staff.approval_kinds import AboveCeiling
from gateway.staff.form_kinds import form_kind
from payments.admin.rows import PaymentsAdmin
from payments.amounts import MINOR_UNITS, display_amount
from payments.models import AutoTopUp, CreditPack, Purchase
from payments.services.subscriptions import SubscriptionRequest, check_sellable

columns.colour("good", Purchase.Status.PAID)
_CURRENCY = one_of("currency", lambda: settings.BILLING_CURRENCIES, word=str.upper)


def _check_pack(pack: CreditPack) -> None:
    """Refuse a price that cannot be charged, and a bonus that gives more for 1.00 than a payout rate may."""
    check_sellable(request=SubscriptionRequest(pack.amount_minor, pack.currency, False))
    if pack.bonus_credits * MINOR_UNITS > settings.CEILING_PAYOUT_RATE * pack.amount_minor:
        raise AboveCeiling(
            f"The ceiling of the bonus is {settings.CEILING_PAYOUT_RATE:,} credits for each 1.00 of the price."
        )


@admin.register(CreditPack)
class CreditPackAdmin(ApprovedForm, StaffAdmin[CreditPack]):
    """The packs that are sold. Purchases keep the price at which they were made."""

    saves = form_kind(
        name="save_credit_pack",
        title="Save a credit pack",
        model=CreditPack,
        asks="payments.change_creditpack",
        decides="payments.decide_creditpack",
        check=_check_pack,
    )
    list_display = ("code", "currency", "price", "bonus_credits", "is_offered", "created_at")
    list_filter = (_CURRENCY, "is_offered")
    ordering = ("currency", "amount_minor")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("payments.change_creditpack")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # Purchases refer to packs, so a pack that is no longer offered stays.

    @admin.display(description="price", ordering="amount_minor")
    def price(self, pack: CreditPack) -> str:
        return display_amount(amount_minor=pack.amount_minor, currency=pack.currency)


@admin.register(Purchase)
class PurchaseAdmin(Exportable, PaymentsAdmin):
    """Credits bought without a subscription. A paid purchase is refunded on the page of its payout."""

    export_columns = (
        Column("purchase", "pk"),
        Column("profile", "user__profile_address"),
        Column("sponsor", "sponsor__slug"),
        Column("invoice", "stripe_invoice_id"),
        Column("pack", "pack__code"),
        Column("amount in minor units", "amount_minor"),
        Column("currency", "currency"),
        Column("bonus credits", "bonus_credits"),
        Column("status", "status"),
        Column("at", "created_at"),
        Column("finished at", "finished_at"),
    )
    stripe_ids: ClassVar[dict[str, str]] = {
        "in": "stripe_invoice_id",
        "cus": "customer__stripe_customer_id",
    }
    list_display = (
        "stripe_invoice_id", "profile", "sponsor", "pack", "amount_minor", "bonus_credits", "status", "top_up",
        "failure_code", "created_at", "finished_at",
    )  # fmt: skip
    list_filter = ("status", _CURRENCY)
    list_select_related = ("user", "sponsor", "pack", "top_up__pack")
    ordering = ("-created_at",)


@admin.register(AutoTopUp)
class AutoTopUpAdmin(PaymentsAdmin):
    """Consents to automatic top-up, with the text that was accepted."""

    search_help_text = "A profile."
    list_display = (
        "consented_at", "profile", "pack", "threshold", "amount_minor", "monthly_limit_minor", "withdrawn_at",
        "paused_reason", "last_tried_at",
    )  # fmt: skip
    list_filter = ("paused_reason",)
    list_select_related = ("user", "pack")
