"""
The admin of webhooks: the endpoints of wallet apps, the messages for them, and each delivery.

A secret is shown once, on the page after its creation, and never again.
"""

from datetime import timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import display_for_value
from django.contrib.postgres.forms import SimpleArrayField
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSplitDateTimeWidget,
    UnfoldAdminTextInputWidget,
)

from gateway.admin import columns, navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions, ReasonForm
from gateway.admin.base import ReadOnlyAdmin, ReadOnlyInline, StaffAdmin
from gateway.common import clock
from gateway.common.errors import DomainError
from webhooks.models import OFFERED, Delivery, Endpoint, EventType, Message, Notice
from webhooks.services import endpoints
from webhooks.services import messages as services

columns.describe({code: code for code in EventType.values})
columns.colour("good", Message.Status.DELIVERED)
columns.colour("waiting", Message.Status.WAITING)
columns.colour("bad", Message.Status.GIVEN_UP, Endpoint.DisabledBy.GONE, Endpoint.DisabledBy.FAILING)
navigation.register(
    "Webhooks", {"webhooks.Endpoint": "webhook", "webhooks.Message": "outbox", "webhooks.Notice": "mail"}
)


def _switch(row: Endpoint, *, is_enabled: bool) -> str:
    now = clock.now()
    if is_enabled:
        changed = endpoints.enable(row, now=now)
    else:
        changed = endpoints.disable(row.pk, by=Endpoint.DisabledBy.STAFF, now=now)
    state = "enabled" if is_enabled else "disabled"
    return f"It is {state} from now on." if changed else f"It was {state} before."


def _retire(row: Endpoint, decision: Decision) -> str:
    endpoints.retire_secret(row)
    return "Only the newest secret signs now."


def _send_test(row: Endpoint, decision: Decision) -> str:
    message = endpoints.send_test(row, now=clock.now())
    return f"{message.public_id} is sent within seconds; its page shows the response."


def _resend(row: Message, decision: Decision) -> str:
    if services.resend(row, now=clock.now()):
        return "It is sent again within seconds."
    return "It is already waiting for delivery."


def _resend_given_up(row: Endpoint, decision: Decision) -> str:
    count = services.resend_given_up(row, since=decision.inputs["since"], now=clock.now())
    return f"{count} messages are sent again."


class SinceForm(ReasonForm):
    since = forms.SplitDateTimeField(
        widget=UnfoldAdminSplitDateTimeWidget, help_text="Messages that failed since this time, in UTC."
    )
    field_order = ("since", "reason")


ENABLE = ReasonedAction(
    name="enable",
    label="Enable",
    permission="webhooks.change_endpoint",
    effect=lambda row: (
        "Sending resumes with the waiting messages. Events from the disabled time are not sent, except the "
        "settlements of calls for which it already has a message."
    ),
    run=lambda row, decision: _switch(row, is_enabled=True),
    applies_to=lambda row: not row.is_enabled,
)
DISABLE = ReasonedAction(
    name="disable",
    label="Disable",
    permission="webhooks.change_endpoint",
    effect=lambda row: "Nothing is sent or stored for it until it is enabled.",
    run=lambda row, decision: _switch(row, is_enabled=False),
    applies_to=lambda row: row.is_enabled,
)
ROTATE_SECRET = ReasonedAction(
    name="rotate_secret",
    label="Create a new secret",
    permission="webhooks.change_endpoint",
    effect=lambda row: "The new secret is shown once. From now on, it and the current secret both sign.",
    run=lambda row, decision: columns.shown_once(
        "Both secrets sign. This is the new one.", endpoints.rotate_secret(row)
    ),
)
RETIRE_SECRET = ReasonedAction(
    name="retire_secret",
    label="Retire the previous secret",
    permission="webhooks.change_endpoint",
    effect=lambda row: "A receiver that has not switched to the newest secret will refuse all messages.",
    run=_retire,
    applies_to=lambda row: bool(row.previous_secret),
)
SEND_TEST = ReasonedAction(
    name="send_test",
    label="Send a test",
    permission="webhooks.change_endpoint",
    effect=lambda row: f"A message of the type webhook.test goes to {row.url}.",
    run=_send_test,
    applies_to=lambda row: row.is_enabled,
)
RESEND_GIVEN_UP = ReasonedAction(
    name="resend_given_up",
    label="Resend failed messages",
    permission="webhooks.resend_message",
    effect=lambda row: "Every message that failed since the chosen time is sent again, in order.",
    run=_resend_given_up,
    form=SinceForm,
    initial=lambda rows: {"since": clock.now() - timedelta(days=7)},
    applies_to=lambda row: row.is_enabled,
)
RESEND = ReasonedAction(
    name="resend",
    label="Send again",
    permission="webhooks.resend_message",
    effect=lambda row: f"It is sent to {row.endpoint} again, with the same webhook-id.",
    run=_resend,
    applies_to=lambda row: row.status != Message.Status.WAITING,
)


class EndpointForm(forms.ModelForm[Endpoint]):
    """The URL is checked as far as possible without resolving its host name."""

    origins = SimpleArrayField(
        forms.CharField(max_length=200),
        widget=UnfoldAdminTextInputWidget,
        help_text="The app's origins such as https://wallet.example, separated by commas. It receives "
        "events of the users who signed in there.",
    )
    event_types = forms.MultipleChoiceField(
        choices=OFFERED,
        initial=[code for code, _ in OFFERED],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    class Meta:
        model = Endpoint
        fields: ClassVar = ("name", "url", "origins", "event_types")

    def clean(self) -> dict[str, Any] | None:
        """Refuse values that the service would refuse."""
        values = super().clean()
        try:
            endpoints.require_configured()
            if "url" in self.cleaned_data:
                endpoints.require_address(self.cleaned_data["url"])
        except DomainError as refusal:
            raise ValidationError(refusal.detail) from refusal
        return values


@admin.register(Endpoint)
class EndpointAdmin(ReasonedActions, StaffAdmin[Endpoint]):
    """Webhook endpoints of wallet apps, which staff edit, and of sponsors, which their members do."""

    form = EndpointForm
    staff_actions = (ENABLE, DISABLE, ROTATE_SECRET, RETIRE_SECRET, SEND_TEST, RESEND_GIVEN_UP)
    list_display = ("name", "sponsor", "url", "enabled", "disabled_by", "failing_since")
    list_select_related = ("sponsor",)
    ordering = ("name",)
    readonly_fields = ("enabled", "disabled_by", "disabled_at", "failing_since", "waiting", "created_at")
    fields = ("name", "url", "origins", "event_types", *readonly_fields)

    def has_change_permission(self, request: HttpRequest, obj: Endpoint | None = None) -> bool:
        # Staff must not edit a sponsor's endpoint: with an origin, it would receive events of people.
        return super().has_change_permission(request, obj) and (obj is None or obj.sponsor_id is None)

    def has_delete_permission(self, request: HttpRequest, obj: Endpoint | None = None) -> bool:
        return False  # Messages reference it, so an unused endpoint is disabled instead of deleted.

    def save_model(self, request: HttpRequest, obj: Endpoint, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
        else:
            messages.warning(request, columns.shown_once("The endpoint has a secret.", endpoints.create(obj)))

    @admin.display(description="enabled")
    def enabled(self, row: Endpoint) -> str:
        return columns.yes_or_no(row.is_enabled)

    @admin.display(description="waiting")
    def waiting(self, row: Endpoint) -> int:
        return row.messages.filter(status=Message.Status.WAITING)[:1000].count()


class DeliveryInline(ReadOnlyInline[Delivery, Message]):
    model = Delivery
    fields = readonly_fields = (
        "number",
        "started_at",
        "milliseconds",
        "response_status",
        "response",
        "error",
    )
    ordering = ("-pk",)


@admin.register(Message)
class MessageAdmin(ReasonedActions, ReadOnlyAdmin):
    """The messages for endpoints, each with every attempt to deliver it."""

    staff_actions = (RESEND,)
    inlines = (DeliveryInline,)
    list_display = ("public_id", "endpoint", "type", "ordering_key", "status", "attempts", "created_at")
    list_filter = ("endpoint", "type", "status")
    list_select_related = ("endpoint",)
    search_fields = ("ordering_key__exact", "key__exact")
    search_help_text = "The webhook-id, or an ordering key such as call:17."
    ordering = ("-id",)
    list_defer = ("body",)
    exclude = ("event_id", "next_attempt_at")
    readonly_fields = ("public_id", "next_attempt")

    def find_rows(self, rows: QuerySet[Message], term: str) -> QuerySet[Message] | None:
        digits = term.removeprefix("msg_")
        is_id = len(digits) == 32 and all(digit in "0123456789abcdef" for digit in digits)
        return rows.filter(event_id=digits) if is_id else None

    @admin.display(description="next attempt at")
    def next_attempt(self, row: Message) -> str | None:
        if row.status != Message.Status.WAITING:
            return None
        return display_for_value(row.next_attempt_at, self.get_empty_value_display())

    @admin.display(description="webhook-id")
    def public_id(self, row: Message) -> str:
        return row.public_id


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    """The e-mails to account holders, with the error of the last attempt; the address is not shown."""

    list_display = ("kind", "user", "status", "attempts", "error", "created_at")
    list_filter = ("kind", "status")
    list_select_related = ("user",)
    search_fields = ("user__profile_address__iexact",)
    search_help_text = "A profile's address."
    ordering = ("-id",)
    exclude = ("data", "next_attempt_at")
