"""The ladders of badges: what a change does to people is shown before it is made."""

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from credits.admin.ledger import OwnedAdmin
from credits.errors import LadderBroken
from credits.models import Badge, ExperienceEntry
from credits.services import ladders
from credits.services.ladders import Preview
from gateway.common.admin import StaffAdmin
from gateway.common.previewed import Previewed


class BadgeForm(forms.ModelForm[Badge]):
    """A badge as it would be; it is judged with its whole ladder, and `preview` contains what it would do."""

    preview: Preview | None = None

    class Meta:
        model = Badge
        fields: ClassVar = ("track", "name", "exp_lower_bound", *ladders.TERMS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields.get("bonus_daily_check_in_attempts")
        # Those who may only look at badges get a form without fields.
        if field is not None:
            most = settings.CHECKIN_MAX_DAILY_ATTEMPTS
            field.help_text = (
                f"Check-ins a day besides the first. Nobody has more than {most} a day, whatever the badges of both "
                "ladders add up to (CHECKIN_MAX_DAILY_ATTEMPTS)."
            )
            # A badge promises nothing that check-ins never give.
            field.validators.append(MaxValueValidator(most - 1))

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            self.preview = ladders.preview_saving(badge=self.instance)
        except LadderBroken as refusal:
            self.add_error("exp_lower_bound", refusal.detail)
        except ValidationError as refusal:
            self.add_error(None, refusal)


@admin.register(Badge)
class BadgeAdmin(Previewed, StaffAdmin[Badge]):
    """Where a badge begins and what it grants; where it ends is where the next one begins."""

    form = BadgeForm
    preview_template = "staff/ladder_preview.html"
    list_display = (
        "name",
        "track",
        "exp_lower_bound",
        "exp_upper_bound",
        "exp_growth_rate",
        "bonus_daily_check_in_attempts",
        "credits_back_percent",
        "acceptable_credit_debt",
    )
    list_filter = ("track",)
    ordering = ("track", "exp_lower_bound")
    fields = (*BadgeForm.Meta.fields[:3], "exp_upper_bound", *ladders.TERMS)
    readonly_fields = ("exp_upper_bound",)
    delete_confirmation_template = "admin/credits/badge/remove.html"

    def get_readonly_fields(self, request: HttpRequest, obj: Badge | None = None) -> Any:
        # Nobody has experience on the other track for it.
        return ("track", *self.readonly_fields) if obj else self.readonly_fields

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        # Badges are removed one by one, each after a look at the consequences for people.
        return {
            name: found for name, found in super().get_actions(request).items() if name != "delete_selected"
        }

    def preview_of(self, form: BadgeForm) -> Preview | None:
        return form.preview

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except LadderBroken as refusal:
            # The ladder has changed since it was shown.
            messages.error(request, f"{refusal.title}. {refusal.detail}")
            return HttpResponseRedirect(request.path)

    def save_model(self, request: HttpRequest, obj: Badge, form: Any, change: bool) -> None:
        """Let the service write, and move the neighbours."""
        ladders.save_badge(badge=obj)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show what a removal would do; the lowest badge of a ladder stays."""
        badge = self.get_object(request, unquote(object_id))
        if badge is None or not self.has_delete_permission(request, badge):
            return super().delete_view(request, object_id, extra_context)
        shown = dict(extra_context or {})
        try:
            shown["preview"] = ladders.preview_removing(badge=badge)
            return super().delete_view(request, object_id, shown)
        except LadderBroken as refusal:
            shown["refusal"] = f"{refusal.title}. {refusal.detail}"
        if request.method == "POST":
            messages.error(request, shown["refusal"])
            return HttpResponseRedirect(reverse("admin:credits_badge_change", args=[badge.pk]))
        return super().delete_view(request, object_id, shown)

    def delete_model(self, request: HttpRequest, obj: Badge) -> None:
        """Let the service remove it."""
        ladders.remove_badge(badge=obj)


@admin.register(ExperienceEntry)
class ExperienceEntryAdmin(OwnedAdmin):
    """The entries that explain somebody's experience."""

    owner_path = "account__user"
    list_display = ("id", "profile", "track", "cause", "base", "amount", "total_after", "created_at")
    list_filter = ("track",)
