"""Payout rates: what is in force, and what a new one changes before it is added."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from gateway.common.admin import ReadOnlyAdmin
from gateway.common.filters import one_of
from gateway.common.previewed import Previewed
from payments.models import PayoutRate
from payments.services import payout_rates
from payments.services.payout_rates import Effect


@admin.register(PayoutRate)
class PayoutRateAdmin(Previewed, ReadOnlyAdmin):
    """Rates are history: a new one is added, none is changed or deleted."""

    preview_template = "staff/payout_rate_preview.html"
    list_display = (
        "currency",
        "credits_per_major_unit",
        "experience_per_minor_unit",
        "valid_from",
        "created_at",
    )
    list_filter = (one_of("currency", lambda: settings.BILLING_CURRENCIES),)
    ordering = ("currency", "-valid_from")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("payments.add_payoutrate")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        rates = payout_rates.standing(now=timezone.now())
        return super().add_view(request, form_url, {**(extra_context or {}), "rates": rates})

    def preview_of(self, form: ModelForm[PayoutRate]) -> Effect:
        return payout_rates.effect_of(rate=form.instance)
