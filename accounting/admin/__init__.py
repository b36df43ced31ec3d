"""Months and rates of the coin in the admin: prepared and closed by actions, exported as a workbook or CSV files."""

import tempfile
import zipfile
from datetime import date, timedelta
from decimal import Decimal
from itertools import chain, islice
from typing import IO, Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import path
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from accounting import queries
from accounting.admin.workbook import workbook
from accounting.models import CoinRate, Month, coins
from accounting.pricing import outlooks
from accounting.services import closing, rates
from accounting.services.exports import Table, about, tables
from accounting.services.sheets import PERSON, TEXT
from gateway.admin import columns, navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions, ReasonForm
from gateway.admin.base import ReadOnlyAdmin, StaffAdmin, one_of
from gateway.admin.exports import cell_of, csv_lines
from gateway.admin.mixins import staff_of
from gateway.chain.config import home
from gateway.common import clock
from gateway.staff import approvals, audit
from gateway.staff.models import ApprovalRequest
from payments.admin.rows import PayoutRateAdmin
from payments.models import PayoutRate
from payments.queries import rates_in_force
from relay.queries.prices import current_prices

navigation.register(
    "Accounting", {"accounting.Month": "calendar_month", "accounting.CoinRate": "currency_exchange"}
)
columns.colour("waiting", Month.Status.PREPARING)
columns.colour("good", Month.Status.CLOSED)
columns.describe({Month.Status.OPEN: "Open"})

_SHOWN_ROWS = 50
_WEEK = timedelta(days=7)
_KINDS = {
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    # A ZIP archive with a file for each table.
    "csv": "application/zip",
}


class MonthForm(ReasonForm):
    month = forms.RegexField(
        r"^20\d\d-(0[1-9]|1[0-2])$",
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "2026-01"}),
        help_text="Year and month, such as 2026-01.",
    )
    field_order = ("month", "reason")

    def first_day(self) -> date:
        return date.fromisoformat(f"{self.cleaned_data['month']}-01")


def _last_month(rows: Any) -> dict[str, Any]:
    today = clock.now().date()
    last = date(today.year - (today.month == 1), (today.month - 2) % 12 + 1, 1)
    return {"month": f"{last:%Y-%m}", "reason": "Month close"}


def _prepare(row: Month, decision: Decision) -> str:
    wanted = decision.inputs.get("month")
    begins_on = date.fromisoformat(f"{wanted}-01") if wanted else row.begins_on
    closing.request_sheets(begins_on=begins_on, now=clock.now())
    return f"A worker prepares {begins_on:%Y-%m}; its page shows the figures within a minute or two."


_EFFECT = "Its figures are computed from the ledger, payouts, the chain and Stripe. Nothing else changes."
PREPARE = ReasonedAction(
    name="prepare",
    label="Prepare a month",
    permission="accounting.prepare_month",
    subject="A month",
    effect=lambda _: _EFFECT,
    run=_prepare,
    form=MonthForm,
    initial=_last_month,
)
PREPARE_AGAIN = ReasonedAction(
    name="prepare_again",
    label="Prepare again",
    permission="accounting.prepare_month",
    effect=lambda _: _EFFECT,
    run=_prepare,
    applies_to=lambda month: month.status != Month.Status.CLOSED,
)


class CloseForm(ReasonForm):
    explanation = forms.CharField(
        required=False,
        label="Reason of the differences",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
        help_text="Needed if a table differs from Stripe: what each difference is, and where it is settled.",
    )
    field_order = ("explanation", "reason")


def _close(row: Month, decision: Decision) -> str:
    approval = closing.request_close(
        month=row,
        actor=decision.actor,
        reason=decision.reason,
        key=decision.key(row),
        explanation=decision.inputs.get("explanation", ""),
    )
    return approvals.outcome_of(approval, f"{row} is closed.")


CLOSE = ReasonedAction(
    name="close",
    label="Close the month",
    permission=closing.CLOSE.asks,
    effect=lambda month: " ".join(
        [f"{month} is closed as it is shown, and never changes again.", *month.differences.splitlines()]
    ),
    run=_close,
    form=CloseForm,
    applies_to=lambda month: month.status == Month.Status.OPEN and not month.problems,
    kind=closing.CLOSE,
)


def _waiting_closes() -> Any:
    return ApprovalRequest.objects.waiting().filter(kind=closing.CLOSE.name)


def _told(requests: Any) -> str:
    return " ".join(f"Request {row.pk} to close {row.subject} waits for a second person." for row in requests)


@admin.register(Month)
class MonthAdmin(ReasonedActions, ReadOnlyAdmin):
    """Months: the amounts owed to holders and earned, reconciled with Stripe and the chain."""

    staff_actions = (PREPARE, PREPARE_AGAIN, CLOSE)
    list_display = ("month", "status", "figures_until", "prepared_at", "closed_at")
    list_defer = ("problems", "closing")
    list_filter = ("status",)
    ordering = ("-begins_on",)
    fields = (
        "begins_on",
        "status",
        "figures_until",
        "prepared_at",
        "closed_at",
        "approval",
        "rule_version",
        "digest",
    )

    def awaited(self, row: Month) -> str:
        if row.status == Month.Status.PREPARING:
            return f"A worker prepares {row}. This page shows the figures as soon as they are there."
        return _told(_waiting_closes().filter(object_id=str(row.pk)))

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        preparing = " ".join(map(self.awaited, Month.objects.filter(status=Month.Status.PREPARING)))
        awaited = f"{preparing} {_told(_waiting_closes())}".strip()
        return {**super().list_context(request), "awaited": awaited}

    @admin.display(ordering="begins_on")
    def month(self, row: Month) -> str:
        return str(row)

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.export_view)
        own = [
            path(f"<int:month_id>/{kind}/", view, {"kind": kind}, name=f"accounting_month_{kind}")
            for kind in _KINDS
        ]
        return [*own, *super().get_urls()]

    def has_export_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request) and request.user.has_perm("accounting.export_month")

    def form_context(self, request: HttpRequest, row: Month | None) -> dict[str, Any]:
        context = super().form_context(request, row)
        if row is not None:
            shown = list(map(_shown, tables(row)))
            context |= {"month": row, "month_tables": shown}
            context["month_empty"] = [table["name"] for table in shown if not table["rows"]]
            if self.has_export_permission(request) and row.prepared_at:
                context["month_exports"] = [
                    {"label": label, "url": self.page_url(kind, row.pk)}
                    for label, kind in (("XLSX", "xlsx"), ("CSV", "csv"))
                ]
        return context

    def export_view(self, request: HttpRequest, month_id: int, kind: str) -> HttpResponseBase:
        if not self.has_export_permission(request):
            raise PermissionDenied
        month = Month.objects.filter(pk=month_id).first()
        if month is None:
            raise Http404
        audit.record(actor=staff_of(request), row=month, action=f"export {kind}")
        made = (
            workbook(month, tables(month), about(month))
            if kind == "xlsx"
            else _zip_of(
                (
                    table.name,
                    chain([list(table.titles)], ([cell_of(cell) for cell in row] for row in table.rows)),
                )
                for table in tables(month)
            )
        )
        ending = "xlsx" if kind == "xlsx" else "zip"
        name = f"month-{month}{'' if month.closed_at else '-open'}.{ending}"
        return FileResponse(made, as_attachment=True, filename=name, content_type=_KINDS[kind])


def _zip_of(sheets: Any) -> IO[bytes]:
    target = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, rows in sheets:
            with archive.open(f"{name}.csv", "w") as file:
                for line in csv_lines(rows):
                    file.write(line)
    target.seek(0)
    return target


def _shown(table: Table) -> dict[str, Any]:
    """Return the first rows of a table for the page."""
    rows = list(islice(table.rows, _SHOWN_ROWS + 1))
    numbers = [kind not in {TEXT, PERSON} for kind in table.kinds]
    return {
        "name": table.name,
        "heads": list(zip(table.titles, numbers, strict=True)),
        "rows": [
            [(_text(cell), is_number) for cell, is_number in zip(row, numbers, strict=True)]
            for row in rows[:_SHOWN_ROWS]
        ],
        "is_cut": len(rows) > _SHOWN_ROWS,
    }


def _text(cell: str | int | Decimal) -> str:
    return cell if isinstance(cell, str) else f"{cell:,}" if isinstance(cell, int) else f"{cell:,f}"


# --- Rates


class RatesForm(ReasonForm):
    rates = forms.CharField(
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 10, "placeholder": "2026-01-31,usd,1.2345,LYX"}),
        help_text=(
            "The lines of a CSV file: day, currency, price of one coin, and the coin (without one, that of the home "
            "chain). A day that has a price gets the new one."
        ),
    )
    field_order = ("rates", "reason")

    def clean_rates(self) -> str:
        text: str = self.cleaned_data["rates"]
        rates.parsed(text)
        return text


def _import(row: CoinRate, decision: Decision) -> str:
    stored = rates.store(decision.inputs["rates"])
    again = closing.request_again(days=[rate.day for rate in stored])
    follows = f" A worker prepares {', '.join(map(str, again))} again." if again else ""
    return f"{len(stored)} rates are stored.{follows}"


IMPORT = ReasonedAction(
    name="import",
    label="Import rates",
    permission="accounting.import_coinrate",
    subject="Rates of coins",
    effect=lambda _: (
        "They value the gas of open months, which are prepared again; a closed month never changes."
    ),
    run=_import,
    form=RatesForm,
    initial=lambda rows: {"reason": "Rates of the month"},
)


@admin.register(CoinRate)
class CoinRateAdmin(ReasonedActions, StaffAdmin[CoinRate]):
    """
    Prices of coins, by day. They value the gas of months that are not closed, and prices of a credit on further chains
    are compared with them.
    """

    staff_actions = (IMPORT,)
    list_display = ("day", "coin", "currency", "price", "created_at")
    list_filter = (
        one_of("coin", coins),
        one_of("currency", lambda: settings.BILLING_CURRENCIES, word=str.upper),
    )
    ordering = ("-day", "coin", "currency")
    fields = ("day", "coin", "currency", "price")

    def save_model(self, request: HttpRequest, obj: CoinRate, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        closing.request_again(days=[obj.day])

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


# --- Prices


@admin.register(PayoutRate)
class PricedRateAdmin(PayoutRateAdmin):
    """Payout rates; the form for a new rate shows the calls that 1.00 buys at today's rates, and the margin."""

    def form_context(self, request: HttpRequest, row: PayoutRate | None) -> dict[str, Any]:
        context = super().form_context(request, row)
        if row is None:
            today = queries.averages(since=clock.now() - _WEEK)
            context |= {"today": today, "prices": _prices(today), "coin": home().currency}
            context["gas_price"] = f"{today.gas_price_wei / 10**9:.3f} gwei" if today.gas_price_wei else ""
        return context


def _prices(today: queries.Today) -> list[dict[str, Any]]:
    newest = queries.newest_prices()
    credit_wei = current_prices()[home().id].credit_wei
    return [
        {
            "currency": rates_now.currency,
            "coin_rate": newest.get(rates_now.currency),
            "outlooks": outlooks(
                credits_per_major_unit=rates_now.rate.credits_per_major_unit,
                credit_wei=credit_wei,
                call_credits=today.call_credits,
                coin_price=getattr(newest.get(rates_now.currency), "price", None),
            ),
        }
        for rates_now in rates_in_force(now=clock.now())
        if rates_now.rate
    ]
