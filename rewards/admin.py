"""Badges, with a preview of what a change does to users; experience; and modifiers, which are granted and ended."""

from decimal import Decimal
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
)

from credits.admin import OwnedAdmin, Owner
from gateway.admin import navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions, ReasonForm
from gateway.admin.base import Previewed, StaffAdmin
from rewards.errors import InvalidLevels
from rewards.models import Badge, CashbackEntry, ExperienceEntry, Modifier, ModifierType, Progress
from rewards.services import levels, modifiers
from rewards.services.levels import Preview

navigation.register(
    "Credits",
    {
        "rewards.Badge": "military_tech",
        "rewards.Progress": "stairs",
        "rewards.ExperienceEntry": "trending_up",
        "rewards.CashbackEntry": "savings",
        "rewards.Modifier": "bolt",
    },
)

_YEAR_MINUTES = 366 * 24 * 60


class ModifierForm(ReasonForm):
    modifier_type = forms.ChoiceField(choices=ModifierType.choices, widget=UnfoldAdminSelectWidget)
    value = forms.DecimalField(
        min_value=Decimal("0.0001"),
        max_value=Decimal(10),
        decimal_places=4,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="A fraction that is added to the badges': 0.05 is 5 % more.",
    )
    minutes = forms.IntegerField(
        min_value=1,
        max_value=_YEAR_MINUTES,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="From now on; a day has 1440.",
    )
    field_order = ("modifier_type", "value", "minutes", "reason")


def grant_modifier(owner: Owner) -> ReasonedAction:
    def run(row: Any, decision: Decision) -> str:
        given = modifiers.grant(
            user=owner(row),
            modifier_type=ModifierType(decision.answers["modifier_type"]),
            value=decision.answers["value"],
            minutes=decision.answers["minutes"],
            key=decision.key(row),
            reason=decision.reason,
            actor=decision.actor,
        )
        return (
            f"{given.get_modifier_type_display()} +{given.value} until {given.expires_at:%Y-%m-%d %H:%M} UTC."
        )

    return ReasonedAction(
        name="grant_modifier",
        label="Grant a modifier",
        permission="rewards.add_modifier",
        effect=lambda row: (
            f"For {owner(row).profile_address}. A bonus is added to the badges' from now on, and ends by itself."
        ),
        run=run,
        form=ModifierForm,
        applies_to=lambda row: owner(row).profile_address is not None,
    )


class BadgeForm(forms.ModelForm[Badge]):
    """A badge as it would be, checked with all levels of its track; `preview` contains what it would do."""

    preview: Preview | None = None

    class Meta:
        model = Badge
        fields: ClassVar = ("track", "name", "exp_lower_bound", *levels.TERMS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields.get("bonus_daily_check_in_attempts")
        # Staff who may only view badges get a form without fields.
        if field is not None:
            most = settings.CHECKIN_MAX_DAILY_ATTEMPTS
            field.help_text = (
                f"Check-ins a day besides the first. Nobody has more than {most} a day, whatever the badges of both "
                "tracks add up to (CHECKIN_MAX_DAILY_ATTEMPTS)."
            )
            # A badge promises nothing that check-ins never give.
            field.validators.append(MaxValueValidator(most - 1))

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            self.preview = levels.preview_saving(badge=self.instance)
        except InvalidLevels as refusal:
            self.add_error("exp_lower_bound", refusal.detail)
        except ValidationError as refusal:
            self.add_error(None, refusal)


@admin.register(Badge)
class BadgeAdmin(Previewed, StaffAdmin[Badge]):
    """Where a badge begins and what it grants; where it ends is where the next one begins."""

    form = BadgeForm
    preview_template = "rewards/levels_preview.html"
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
    fields = (*BadgeForm.Meta.fields[:3], "exp_upper_bound", *levels.TERMS)
    readonly_fields = ("exp_upper_bound",)
    delete_confirmation_template = "admin/rewards/badge/remove.html"

    def get_readonly_fields(self, request: HttpRequest, obj: Badge | None = None) -> Any:
        # A badge stays on its track.
        return ("track", *self.readonly_fields) if obj else self.readonly_fields

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        # Badges are removed one by one, each after a look at the consequences for people.
        return {
            name: action for name, action in super().get_actions(request).items() if name != "delete_selected"
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
        except InvalidLevels as refusal:
            # The levels have changed since they were shown.
            messages.error(request, f"{refusal.title}. {refusal.detail}")
            return HttpResponseRedirect(request.path)

    def save_model(self, request: HttpRequest, obj: Badge, form: Any, change: bool) -> None:
        levels.save_badge(badge=obj)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show what a removal would do; the lowest badge of a track stays."""
        badge = self.get_object(request, unquote(object_id))
        if badge is None or not self.has_delete_permission(request, badge):
            return super().delete_view(request, object_id, extra_context)
        shown = dict(extra_context or {})
        try:
            shown["preview"] = levels.preview_removing(badge=badge)
            return super().delete_view(request, object_id, shown)
        except InvalidLevels as refusal:
            shown["refusal"] = f"{refusal.title}. {refusal.detail}"
        if request.method == "POST":
            messages.error(request, shown["refusal"])
            return HttpResponseRedirect(reverse("admin:rewards_badge_change", args=[badge.pk]))
        return super().delete_view(request, object_id, shown)

    def delete_model(self, request: HttpRequest, obj: Badge) -> None:
        levels.remove_badge(badge=obj)


@admin.register(Progress)
class ProgressAdmin(OwnedAdmin):
    owner_path = "user"
    list_display = ("id", "profile", "permanent_experience", "subscriber_experience", "cashback_remainder")


@admin.register(ExperienceEntry)
class ExperienceEntryAdmin(OwnedAdmin):
    owner_path = "progress__user"
    list_display = ("id", "profile", "track", "cause", "base", "amount", "total_after", "created_at")
    list_filter = ("track",)


@admin.register(CashbackEntry)
class CashbackEntryAdmin(OwnedAdmin):
    """What came back of each charge, to the fraction; the ledger has the whole credits."""

    owner_path = "progress__user"
    search_fields = ("key__startswith",)
    list_display = ("id", "profile", "key", "amount", "credits", "remainder_after", "created_at")


def _end(row: Modifier, decision: Decision) -> str:
    modifiers.end(modifier_id=row.pk)
    return "It has ended."


END_MODIFIER = ReasonedAction(
    name="end",
    label="End modifier",
    permission="rewards.add_modifier",
    effect=lambda row: (
        f"{row.user.profile_address} loses +{row.value} of {row.get_modifier_type_display()} at once, "
        f"and not at {row.expires_at:%Y-%m-%d %H:%M} UTC. What was earned with it stays. "
        "To correct a modifier, end it and grant another."
    ),
    run=_end,
    changes=lambda row: {"expires_at": (str(row.expires_at), "now")},
    applies_to=lambda row: row.expires_at > timezone.now(),
)


@admin.register(Modifier)
class ModifierAdmin(ReasonedActions, OwnedAdmin):
    """One is given by an action on a person's page, and ends by itself or by an action here."""

    owner_path = "user"
    staff_actions = (END_MODIFIER,)
    list_display = (
        "id",
        "profile",
        "modifier_type",
        "value",
        "created_at",
        "expires_at",
        "reason",
        "given_by",
    )
    list_filter = ("modifier_type", ("expires_at", admin.DateFieldListFilter))
    list_select_related = ("actor",)

    @admin.display(description="given by")
    def given_by(self, modifier: Modifier) -> str:
        return str(modifier.actor or "")
