"""Check-ins in the admin: drop tables with their odds, check-ins and seeds."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import BaseInlineFormSet, ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from checkin import queries
from checkin.draw import Item, Odds, odds_of, probabilities_of, streak_levels, unlocked
from checkin.errors import DropTableNotADraft
from checkin.models import CheckIn, DailySeed, DropItem, DropTable
from checkin.services import drop_tables
from credits.admin import OwnedAdmin
from gateway.admin import columns, navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions, ReasonForm
from gateway.admin.admin import offer_pause
from gateway.admin.base import ReadOnlyAdmin, StaffAdmin, StaffInline
from gateway.admin.mixins import staff_of
from gateway.staff import approvals

navigation.register(
    "Check-in",
    {"checkin.CheckIn": "casino", "checkin.DropTable": "table_chart", "checkin.DailySeed": "grain"},
)


def odds_page(table: DropTable) -> SafeString:
    """Return the probabilities, and the expected value, standard deviation and maximum per draw and per day."""
    items = queries.items_of([table])
    # No draws use a table whose badge was deleted.
    attempts = queries.most_attempts(table.badge) if table.badge else 0
    levels = [_level(streak, items, attempts) for streak in streak_levels(items)]
    return render_to_string("checkin/odds.html", {"levels": levels, "attempts": attempts})


def _level(streak: int, items: list[Item], attempts: int) -> dict[str, Any]:
    """Return the odds of a draw on the `streak`-th day in a row."""
    possible = unlocked(items, streak=streak)
    return {
        "streak": streak,
        "items": [_item(*pair) for pair in zip(possible, probabilities_of(possible), strict=True)],
        "worths": [_worth(odds, attempts) for odds in odds_of(possible)],
    }


def _item(item: Item, chance: Fraction) -> dict[str, Any]:
    return {
        "drop_type": columns.word_of(item.drop_type),
        "weight": item.weight,
        "values": f"{_plain(item.least)}–{_plain(item.most)}",
        "minutes": item.minutes or "",
        "probability": _percent(chance),
    }


def _worth(odds: Odds, attempts: int) -> dict[str, str]:
    day = odds.over(attempts)
    return {
        "drop_type": columns.word_of(odds.drop_type),
        "probability": _percent(odds.probability),
        "expected": _figure(odds.expected),
        "variance": _figure(odds.variance),
        "expected_per_day": _figure(day.expected),
        "most_per_day": _plain(day.most),
    }


def _percent(chance: Fraction) -> str:
    # Precise enough to show the rarest possible item.
    return f"{_plain(Decimal(f'{float(chance * 100):.5f}'))}%"


def _figure(value: Fraction) -> str:
    return _plain(Decimal(f"{float(value):.6f}"))


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}"


offer_pause(
    queries.CHECK_INS,
    title="check-ins",
    effect="New check-ins are refused with 503. Check-ins in progress complete.",
)


class PublishForm(ReasonForm):
    reviewed = forms.CharField(widget=forms.HiddenInput)


def _reviewed(rows: Sequence[DropTable]) -> dict[str, Any]:
    return {"reviewed": " ".join(drop_tables.fingerprint_of(row) for row in rows)}


def _publish(row: DropTable, decision: Decision) -> str:
    approval = drop_tables.request_publication(
        table_id=row.pk,
        actor=decision.actor,
        reviewed=decision.inputs["reviewed"].split(),
        reason=decision.reason,
        key=decision.key(row),
    )
    return approvals.outcome_of(approval, "It is in force now.")


def _publishing(row: DropTable) -> SafeString:
    """Return the effect of publishing: the table's odds, and the rules that it breaks."""
    effect = f"When approved, it comes into force for {row.badge} and can no longer be changed."
    return format_html("{} {}{}", effect, " ".join(drop_tables.faults_of(row)), odds_page(row))


PUBLISH = ReasonedAction(
    name="publish",
    label="Publish",
    permission=drop_tables.PUBLISH.asks,
    effect=_publishing,
    run=_publish,
    form=PublishForm,
    initial=_reviewed,
    applies_to=lambda row: row.published_at is None,
    kind=drop_tables.PUBLISH,
)


def _may_write(request: HttpRequest, table: DropTable | None) -> bool:
    """
    Return whether the table is a draft of the signed-in member of staff, or a new one.

    The table may have been published by the time its author saves; the form and the
    deletion page report that, because a plain 403 would lose the input.
    """
    if table is None:
        return True
    return table.author_id == request.user.pk and (table.published_at is None or request.method == "POST")


class DropItemFormSet(BaseInlineFormSet[DropItem, DropTable, ModelForm[DropItem]]):
    """The items that an author saves; a lock on the table prevents publishing until all are saved."""

    def clean(self) -> None:
        super().clean()
        if self.instance._state.adding:
            return
        try:
            drop_tables.lock_draft(table_id=self.instance.pk)
        except DropTableNotADraft as error:
            raise ValidationError(error.detail) from error


class DropItemInline(StaffInline[DropItem, DropTable]):
    model = DropItem
    formset = DropItemFormSet
    fields = ("drop_type", "weight", "value_min", "value_max", "minutes", "streak_days")
    ordering = ("id",)

    def formfield_for_choice_field(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        words = [(code, columns.word_of(code, label)) for code, label in db_field.choices]
        return super().formfield_for_choice_field(
            db_field, request, choices=[("", "---------"), *words], **kwargs
        )

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_add_permission(request, obj) and _may_write(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _may_write(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_write(request, obj)


@admin.register(DropTable)
class DropTableAdmin(ReasonedActions, StaffAdmin[DropTable]):
    """Drop tables: drafts with their odds, published after approval."""

    list_display = ("id", "badge", "version", "author", "published_at", "published_by")
    list_filter = ("badge__track", ("published_at", admin.EmptyFieldListFilter))
    list_select_related = ("badge", "author", "published_by")
    ordering = ("-id",)
    inlines = (DropItemInline,)
    actions = ("copy_as_draft",)
    staff_actions = (PUBLISH,)
    readonly_fields = ("version", "author", "created_at", "published_at", "published_by", "odds", "faults")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.readonly_fields if obj is None else ("badge", *self.readonly_fields)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> DropTable | None:
        """Lock the table before saving, because the form compares the submitted items with those that it then reads."""
        table = super().get_object(request, object_id, from_field)
        if table is None or request.method != "POST":
            return table
        return DropTable.objects.select_for_update().get(pk=table.pk)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _may_write(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Not offered in lists, where one click would also select published tables.
        return obj is not None and super().has_delete_permission(request, obj) and _may_write(request, obj)

    def save_model(self, request: HttpRequest, obj: DropTable, form: ModelForm[Any], change: bool) -> None:
        """Create a draft through the service; do nothing for an existing one, of which only the items change."""
        if change or obj.badge is None:
            return
        draft = drop_tables.create_draft(badge=obj.badge, author=staff_of(request))
        obj.pk, obj.version, obj.author_id = draft.pk, draft.version, draft.author_id
        obj._state.adding = False

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            return super().delete_view(request, object_id, extra_context)
        except DropTableNotADraft as error:
            messages.error(request, f"{error.title}. {error.detail}")
            return HttpResponseRedirect(self.page_url("change", object_id))

    def delete_model(self, request: HttpRequest, obj: DropTable) -> None:
        drop_tables.lock_draft(table_id=obj.pk)
        super().delete_model(request, obj)

    @admin.action(description="Copy as my new drafts", permissions=["add"])
    def copy_as_draft(self, request: HttpRequest, queryset: QuerySet[DropTable]) -> None:
        for table in queryset.select_related("badge").exclude(badge=None).order_by("id"):
            if table.badge is not None:
                draft = drop_tables.create_draft(badge=table.badge, author=staff_of(request), like=table)
                self.log_addition(request, draft, f"copied from {table}")
                messages.success(request, f"You can now edit {draft}.")

    @admin.display(description="odds of the saved items")
    def odds(self, table: DropTable) -> str:
        return odds_page(table) if table.pk else ""

    @admin.display(description="rules broken")
    def faults(self, table: DropTable) -> str:
        return " ".join(drop_tables.faults_of(table)) if table.pk else ""


@admin.register(CheckIn)
class CheckInAdmin(OwnedAdmin):
    owner_path = "user"
    list_display = ("id", "profile", "day", "attempt", "awarded", "experience_only", "created_at")
    list_filter = ("experience_only",)
    readonly_fields = ("awarded", "effect_key")

    @admin.display(description="awarded")
    def awarded(self, row: CheckIn) -> str:
        drop = row.result
        return f"{columns.word_of(drop['type'])}: {drop['value']}" + (
            f" for {drop['minutes']} min" if drop["minutes"] else ""
        )


@admin.register(DailySeed)
class DailySeedAdmin(ReadOnlyAdmin):
    list_display = fields = ("day", "commitment", "created_at", "revealed_at", "revealed_seed")
    ordering = ("-day",)
