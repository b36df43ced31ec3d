"""Drop tables: written as drafts, weighed, published by a second person."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import BaseInlineFormSet, ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from checkin.admin.actions import PUBLISH
from checkin.admin.odds import odds_page
from checkin.errors import DropTableNotADraft
from checkin.models import DropItem, DropTable
from checkin.services import drafts, publishing
from gateway.common.admin import StaffAdmin, StaffInline
from gateway.common.owner import staff_of
from gateway.common.staff_actions import ReasonedActions


def _may_write(request: HttpRequest, table: DropTable | None) -> bool:
    """
    Return whether the table is a draft of whoever asks, or a new one.

    The table may have been published by the time its author saves; the form and the
    page of deletion say so, because a bare refusal would lose what was typed.
    """
    if table is None:
        return True
    return table.author_id == request.user.pk and (table.published_at is None or request.method == "POST")


class DropItemFormSet(BaseInlineFormSet[DropItem, DropTable, ModelForm[DropItem]]):
    """The items that an author saves: valid only while the table is a draft, which it stays until all are saved."""

    def clean(self) -> None:
        super().clean()
        if self.instance._state.adding:
            return
        try:
            drafts.keep(table_id=self.instance.pk)
        except DropTableNotADraft as refusal:
            raise ValidationError(refusal.detail) from refusal


class DropItemInline(StaffInline[DropItem, DropTable]):
    """The items of the shown table."""

    model = DropItem
    formset = DropItemFormSet
    fields = ("drop_type", "weight", "value_min", "value_max", "minutes")
    ordering = ("id",)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_add_permission(request, obj) and _may_write(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _may_write(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_write(request, obj)


@admin.register(DropTable)
class DropTableAdmin(ReasonedActions, StaffAdmin[DropTable]):
    """Drafts are written here, weighed by their odds, and published by a second person."""

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

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and _may_write(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Not in lists, where one click would try to delete published tables as well.
        return obj is not None and super().has_delete_permission(request, obj) and _may_write(request, obj)

    def save_model(self, request: HttpRequest, obj: DropTable, form: ModelForm[Any], change: bool) -> None:
        """Begin a draft through the service; of an old one, only the items change."""
        if change or obj.badge is None:
            return
        begun = drafts.begin(badge=obj.badge, author=staff_of(request))
        obj.pk, obj.version, obj.author_id = begun.pk, begun.version, begun.author_id
        obj._state.adding = False

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        try:
            return super().delete_view(request, object_id, extra_context)
        except DropTableNotADraft as refusal:
            messages.error(request, f"{refusal.title}. {refusal.detail}")
            return HttpResponseRedirect(self._url("change", object_id))

    def delete_model(self, request: HttpRequest, obj: DropTable) -> None:
        """Throw a draft away, unless it was published meanwhile."""
        drafts.keep(table_id=obj.pk)
        super().delete_model(request, obj)

    @admin.action(description="Copy as new drafts of mine", permissions=["add"])
    def copy_as_draft(self, request: HttpRequest, queryset: QuerySet[DropTable]) -> None:
        """Begin a draft with the items of each."""
        for table in queryset.select_related("badge").exclude(badge=None).order_by("id"):
            if table.badge is not None:
                draft = drafts.begin(badge=table.badge, author=staff_of(request), like=table)
                self.log_addition(request, draft, f"copied from {table}")
                messages.success(request, f"{draft} is yours to change.")

    @admin.display(description="odds of the saved items")
    def odds(self, table: DropTable) -> str:
        """Show probabilities, and per draw and per day what is expected, how far it strays, and the most."""
        return odds_page(table) if table.pk else ""

    @admin.display(description="what stands against publishing")
    def faults(self, table: DropTable) -> str:
        """Show the rules that the saved items break."""
        return " ".join(publishing.faults_of(table)) if table.pk else ""
