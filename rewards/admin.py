"""Badges, with a preview of a change's effect on users; experience; and modifiers, which are granted and ended."""

from decimal import Decimal
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.html import strip_tags
from django.utils.safestring import SafeString, mark_safe
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
)

from credits.admin import OwnedAdmin, Owner
from gateway.admin import columns, navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions, ReasonForm
from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import StaffAdmin
from gateway.common import clock
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import AboveCeiling, Done, Kind, RequestOutdated
from gateway.staff.form_kinds import form_kind
from gateway.staff.models import ApprovalRequest
from rewards.errors import InvalidLevels
from rewards.models import (
    FRACTIONS,
    MAX_MODIFIER_SUM,
    TERMS,
    Badge,
    BadgeTrack,
    CashbackEntry,
    ExperienceEntry,
    Modifier,
    ModifierType,
    Progress,
)
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

columns.describe(
    {
        ModifierType.BONUS_PUSH_ADS_CREDITS: "Bonus on push ads",
        ModifierType.BONUS_VIDEO_ADS_CREDITS: "Bonus on videos",
        ModifierType.BONUS_OFFERWALL_CREDITS: "Bonus on offers",
        ModifierType.BONUS_SURVEYS_CREDITS: "Bonus on surveys",
        ModifierType.BONUS_CREDITS_BACK: "Bonus on cashback",
    }
)

_YEAR_MINUTES = 366 * 24 * 60


class ModifierForm(ReasonForm):
    modifier_type = forms.ChoiceField(choices=ModifierType.choices, widget=UnfoldAdminSelectWidget)
    value = forms.DecimalField(
        min_value=Decimal("0.0001"),
        max_value=MAX_MODIFIER_SUM,
        decimal_places=4,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text="A fraction added to the badges' bonus: 0.05 is 5 % more. All modifiers of a type add at most 100 %.",
    )
    minutes = forms.IntegerField(
        min_value=1,
        max_value=_YEAR_MINUTES,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Duration in minutes; a day has 1440.",
    )
    field_order = ("modifier_type", "value", "minutes", "reason")


def _percent(fraction: Decimal) -> str:
    return strip_tags(columns.percent(fraction))


def grant_modifier(owner: Owner) -> ReasonedAction:
    def run(row: Any, decision: Decision) -> str:
        inputs = decision.inputs
        approval = modifiers.request(
            user=owner(row),
            modifier_type=ModifierType(inputs["modifier_type"]),
            value=inputs["value"],
            minutes=inputs["minutes"],
            key=decision.key(row),
            reason=decision.reason,
            actor=decision.actor,
        )
        return approvals.outcome_of(
            approval, f"{_percent(inputs['value'])} for {inputs['minutes']:,} minutes, starting now."
        )

    return ReasonedAction(
        name="grant_modifier",
        label="Grant a modifier",
        permission=modifiers.GRANT.asks,
        effect=lambda row: (
            f"For {owner(row).profile_address}. The bonus is added to the badges' bonus and expires by itself. "
            "A percent-day is 1 % for a day: 5 % for a week is 35."
        ),
        run=run,
        form=ModifierForm,
        # A sponsor's account has no user.
        applies_to=lambda row: owner(row) is not None and owner(row).profile_address is not None,
        kind=modifiers.GRANT,
        person=owner,
    )


class BadgeForm(forms.ModelForm[Badge]):
    """A changed badge, validated with all levels of its track; `preview` has its effect."""

    preview: Preview | None = None

    class Meta:
        model = Badge
        fields: ClassVar = ("track", "name", "exp_lower_bound", *TERMS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields.get("bonus_daily_check_in_attempts")
        # Staff who may only view badges get a form without fields.
        if field is not None:
            most = settings.CHECKIN_MAX_DAILY_ATTEMPTS
            field.help_text = (
                f"Extra daily check-ins. A user has at most {most} a day, including the sum of both "
                "tracks' badges (CHECKIN_MAX_DAILY_ATTEMPTS)."
            )
            # A badge must not promise check-ins beyond the maximum.
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


def _check_badge(badge: Badge) -> None:
    if max(getattr(badge, term) for term in FRACTIONS) > 1:
        raise AboveCeiling("A badge's bonus is at most 100 %.")
    if badge.acceptable_credit_debt > settings.CEILING_BADGE_DEBT:
        raise AboveCeiling(f"A badge's debt limit is at most {settings.CEILING_BADGE_DEBT:,} credits.")


def _removed(approval: ApprovalRequest) -> Done:
    badge = Badge.objects.get(pk=approval.object_id)
    if str(badge.exp_lower_bound) != approval.payload["exp_lower_bound"]:
        raise RequestOutdated(
            "The badge was changed in the meantime. Reject the request and request the change again."
        )
    levels.remove_badge(badge=badge)
    return Done("It is removed.", approval)


REMOVAL = approval_kinds.register(
    Kind(
        name="remove_badge",
        title="Remove a badge",
        asks="rewards.delete_badge",
        decides="rewards.decide_badge",
        carry_out=_removed,
    )
)


def _ask_to_remove(row: Badge, decision: Decision) -> str:
    bound = str(row.exp_lower_bound)
    approval = approvals.ask(
        kind=REMOVAL,
        actor=decision.actor,
        reason=decision.reason,
        key=decision.key(row),
        row=row,
        payload={"exp_lower_bound": bound},
        changes={"badge": (f"{row} from {bound}", "")},
    )
    return approvals.outcome_of(approval, "It is removed.")


REMOVE_BADGE = ReasonedAction(
    name="remove",
    label="Remove",
    permission=REMOVAL.asks,
    effect=lambda row: mark_safe(  # noqa: S308 - the template escapes
        render_to_string("rewards/levels_preview.html", {"preview": levels.preview_removing(badge=row)})
    ),
    run=_ask_to_remove,
    # The lowest badge of a track stays.
    applies_to=lambda row: row.exp_lower_bound > 0,
    kind=REMOVAL,
)


@admin.register(Badge)
class BadgeAdmin(ApprovedForm, ReasonedActions, StaffAdmin[Badge]):
    """A badge's lower bound and benefits; its upper bound is the next badge's lower bound."""

    form = BadgeForm
    preview_template = "rewards/levels_preview.html"
    saves = form_kind(
        name="save_badge",
        title="Change badges",
        model=Badge,
        asks="rewards.change_badge",
        decides="rewards.decide_badge",
        check=_check_badge,
        save=lambda badge, values: levels.save_badge(badge=badge),
    )
    staff_actions = (REMOVE_BADGE,)
    percents = FRACTIONS
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
    fields = (*BadgeForm.Meta.fields[:3], "exp_upper_bound", *TERMS)
    readonly_fields = ("exp_upper_bound",)

    def get_readonly_fields(self, request: HttpRequest, obj: Badge | None = None) -> Any:
        # A badge stays on its track.
        return ("track", *self.readonly_fields) if obj else self.readonly_fields

    def preview_of(self, form: BadgeForm) -> Preview | None:
        return form.preview

    def has_delete_permission(self, request: HttpRequest, obj: Badge | None = None) -> bool:
        return False  # An action requests it, after a preview of the effect on users.


def _badge_at(track: BadgeTrack, experience: str) -> Subquery:
    """Return the name of the badge of the track at the row's experience."""
    reached = Badge.objects.filter(track=track, exp_lower_bound__lte=OuterRef(experience))
    return Subquery(reached.order_by("-exp_lower_bound").values("name")[:1])


@admin.register(Progress)
class ProgressAdmin(OwnedAdmin):
    """Running totals, with the badge that each has reached; the subscriber's counts while a paid period runs."""

    owner_path = "user"
    list_display = (
        *("id", "profile", "permanent_experience", "permanent_badge"),
        *("subscriber_experience", "subscriber_badge", "cashback_remainder"),
    )
    readonly_fields = ("permanent_badge", "subscriber_badge")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = (
            super()
            .get_queryset(request)
            .annotate(
                permanent_badge_name=_badge_at(BadgeTrack.PERMANENT, "permanent_experience"),
                subscriber_badge_name=_badge_at(BadgeTrack.SUBSCRIBER, "subscriber_experience"),
            )
        )
        return rows

    @admin.display(description="permanent badge", ordering="permanent_experience")
    def permanent_badge(self, progress: Any) -> str:
        return str(progress.permanent_badge_name or "")

    @admin.display(description="subscriber badge", ordering="subscriber_experience")
    def subscriber_badge(self, progress: Any) -> str:
        return str(progress.subscriber_badge_name or "")


@admin.register(ExperienceEntry)
class ExperienceEntryAdmin(OwnedAdmin):
    owner_path = "progress__user"
    list_display = ("id", "profile", "track", "cause", "base", "amount", "total_after", "created_at")
    list_filter = ("track",)


@admin.register(CashbackEntry)
class CashbackEntryAdmin(OwnedAdmin):
    """The exact cashback of each charge; the ledger has the whole credits."""

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
        f"{row.user.profile_address} loses {_percent(row.bonus)} of {row.get_modifier_type_display()} now, "
        f"instead of at {row.expires_at:%Y-%m-%d %H:%M} UTC. Credits earned with it stay. "
        "To correct a modifier, end it and grant another."
    ),
    run=_end,
    changes=lambda row: {"expires_at": (str(row.expires_at), "now")},
    applies_to=lambda row: row.expires_at > clock.now(),
)


@admin.register(Modifier)
class ModifierAdmin(ReasonedActions, OwnedAdmin):
    """Modifiers are granted on a person's page, and expire or are ended by an action here."""

    owner_path = "user"
    staff_actions = (END_MODIFIER,)
    exclude = ("value",)
    readonly_fields = ("bonus",)
    list_display = (
        "id",
        "profile",
        "modifier_type",
        "bonus",
        "created_at",
        "expires_at",
        "reason",
        "given_by",
    )
    list_filter = (
        columns.worded("modifier_type", lambda: ModifierType.values),
        ("expires_at", admin.DateFieldListFilter),
    )
    list_select_related = ("actor",)

    @admin.display(description="bonus", ordering="value")
    def bonus(self, modifier: Modifier) -> str | SafeString:
        return columns.percent(modifier.bonus)

    @admin.display(description="given by")
    def given_by(self, modifier: Modifier) -> str:
        return str(modifier.actor or "")
