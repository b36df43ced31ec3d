"""The prices of a credit on each chain; a new one needs approval."""

from typing import Any

from django import forms
from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminSelectWidget

from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import AppendOnlyAdmin
from gateway.admin.of_chains import OfChains
from gateway.chain.config import chain_of, chains
from gateway.staff.form_kinds import form_kind
from relay.models import CreditPrice
from relay.services.fleet import prices


class PriceForm(ModelForm[CreditPrice]):
    """A new price of one of the service's chains."""

    chain_id = forms.TypedChoiceField(
        label="Chain",
        coerce=int,
        choices=lambda: [(chain.id, f"{chain.name} ({chain.id})") for chain in chains()],
        widget=UnfoldAdminSelectWidget,
    )


@admin.register(CreditPrice)
class CreditPriceAdmin(OfChains, ApprovedForm, AppendOnlyAdmin):
    """Prices of a credit. The newest of a chain is in force; calls keep theirs, and no price is changed or deleted."""

    saves = form_kind(
        name="add_credit_price",
        title="Change the price of a credit",
        model=CreditPrice,
        asks="relay.add_creditprice",
        decides="relay.decide_creditprice",
        check=prices.require_plausible,
        save=prices.put_in_force,
    )
    form = PriceForm
    fields = ("chain_id", "credit_wei")
    list_display = ("chain", "credit_wei", "coins_per_million", "valid_from", "is_first")
    ordering = ("-valid_from",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.fields, "valid_from", "is_first") if obj else self.fields

    @admin.display(description="a million credits")
    def coins_per_million(self, price: CreditPrice) -> str:
        return chain_of(price.chain_id).amount(10**6 * price.credit_wei, places=6)
