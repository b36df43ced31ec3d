"""
Webhooks: endpoints of wallet apps, their messages, and delivery attempts.

A message is for one endpoint, and its row is the only state that a delivery needs after a crash. A cursor stores the
time up to which the rows of a source have been read.
"""

import uuid
from datetime import datetime
from typing import Self, TypeAlias

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Min, Q

from gateway.common.fields import ClockField
from gateway.common.http import normal_origin
from sponsors.models import Sponsor, UsageScope

_NO_ORIGIN = "Enter origins such as https://wallet.example, without a path."


class EventType(models.TextChoices):
    """The events that an endpoint may subscribe to. The names are those on the wire."""

    CALL_ACCEPTED = "call.accepted", "call.accepted"
    CALL_SETTLED = "call.settled", "call.settled"
    CALL_REOPENED = "call.reopened", "call.reopened"
    CREDITS_POSTED = "credits.posted", "credits.posted"
    CREDITS_LOW = "credits.low", "credits.low"
    CREDITS_DEPLETED = "credits.depleted", "credits.depleted"
    CREDITS_RECOVERED = "credits.recovered", "credits.recovered"
    CREDITS_EXPIRING = "credits.expiring", "credits.expiring"
    EARNING_HELD = "earning.held", "earning.held"
    EARNING_RELEASED = "earning.released", "earning.released"
    EARNING_REVERSED = "earning.reversed", "earning.reversed"
    TOP_UP = "credits.top-up", "credits.top-up"
    SUBSCRIPTION_CHANGED = "subscription.changed", "subscription.changed"
    SPONSOR_LOW = "sponsor.low", "sponsor.low"
    SPONSOR_RECOVERED = "sponsor.recovered", "sponsor.recovered"
    SPONSOR_PROFILES_LOW = "sponsor.profiles-low", "sponsor.profiles-low"
    SPONSOR_POSTED = "sponsor.posted", "sponsor.posted"
    SPONSOR_CALL_SETTLED = "sponsor.call-settled", "sponsor.call-settled"
    SPONSOR_CALL_REOPENED = "sponsor.call-reopened", "sponsor.call-reopened"
    SPONSOR_PROFILE_CREATED = "sponsor.profile-created", "sponsor.profile-created"
    SPONSOR_PROFILE_FAILED = "sponsor.profile-failed", "sponsor.profile-failed"
    TEST = "webhook.test", "webhook.test"


OF_SPONSORED_CALLS = (
    EventType.SPONSOR_CALL_SETTLED,
    EventType.SPONSOR_CALL_REOPENED,
    EventType.SPONSOR_PROFILE_CREATED,
    EventType.SPONSOR_PROFILE_FAILED,
)
# Endpoints of wallet apps cannot subscribe to these: staff send tests, and the others are for sponsors' endpoints.
_NOT_OFFERED = {
    EventType.TEST,
    EventType.SPONSOR_PROFILES_LOW,
    EventType.SPONSOR_POSTED,
    *OF_SPONSORED_CALLS,
}
OFFERED = [(value, label) for value, label in EventType.choices if value not in _NOT_OFFERED]
TO_SPONSORS = (
    EventType.SPONSOR_LOW,
    EventType.SPONSOR_RECOVERED,
    EventType.SPONSOR_PROFILES_LOW,
    EventType.SPONSOR_POSTED,
    *OF_SPONSORED_CALLS,
)


class EndpointQuerySet(models.QuerySet["Endpoint"]):
    def enabled(self) -> Self:
        return self.filter(disabled_at=None)

    def with_due(self, now: datetime) -> Self:
        """Keep enabled endpoints with messages that are due, the one with the oldest first."""
        due = self.enabled().filter(
            messages__status=MessageStatus.WAITING, messages__next_attempt_at__lte=now
        )
        return due.annotate(oldest=Min("messages__next_attempt_at")).order_by("oldest", "pk")

    def of_sponsor(self, sponsor: Sponsor) -> Self:
        """Keep the sponsor's endpoints that it has not deleted."""
        return self.filter(sponsor=sponsor).exclude(disabled_by=Endpoint.DisabledBy.SPONSOR)


class Endpoint(models.Model):
    """
    An endpoint at which a wallet app receives events of the profiles signed in to it, or a sponsor its own events.

    A sponsor's endpoint has no origins, so it receives no events of people. The secrets are encrypted;
    `services.endpoints` decrypts them.
    """

    class DisabledBy(models.TextChoices):
        STAFF = "staff", "staff"
        GONE = "gone", "the receiver, which answered 410"
        FAILING = "failing", "failing for days"
        SPONSOR = "sponsor", "its sponsor, who has deleted it"
        LEFT = "left", "the end of its maker's membership"

    name = models.CharField(max_length=80, unique=True, help_text="Name of the wallet app, shown to staff.")
    url = models.CharField(
        "address", max_length=2000, help_text="The https URL to which messages are posted."
    )
    origins = ArrayField(
        models.CharField(max_length=200),
        help_text="The app's origins, such as https://wallet.example. It receives events of users who signed in there.",
    )
    sponsor = models.ForeignKey(
        "sponsors.Sponsor",
        models.CASCADE,
        null=True,
        editable=False,
        related_name="endpoints",
        db_index=False,
    )
    # The member who made a sponsor's endpoint. Null only for those that version 1.0 made.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, editable=False, related_name="+", db_index=False
    )
    event_types = ArrayField(
        models.CharField(max_length=40, choices=OFFERED), help_text="The events it receives."
    )
    current_secret = models.TextField(editable=False)
    previous_secret = models.TextField(blank=True, default="", editable=False)
    # Earlier events are not sent, except settlements of calls for which the endpoint already has a message.
    enabled_at = ClockField(editable=False)
    disabled_at = models.DateTimeField(null=True, editable=False)
    disabled_by = models.CharField(max_length=8, choices=DisabledBy, blank=True, default="", editable=False)
    # The time since which every attempt has failed.
    failing_since = models.DateTimeField(null=True, editable=False)
    created_at = ClockField(editable=False)

    objects = EndpointQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(disabled_at=None, disabled_by="")
                | (Q(disabled_at__isnull=False) & ~Q(disabled_by="")),
                name="endpoint_disabled_by_somebody",
            ),
            models.CheckConstraint(condition=~Q(current_secret=""), name="endpoint_has_secret"),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Normalise the origins and refuse invalid ones; only a sponsor's endpoint may have none."""
        if self.sponsor_id is not None:
            return
        origins = [normal_origin(text) for text in self.origins or ()]
        if not origins or not all(origins):
            raise ValidationError({"origins": _NO_ORIGIN})
        self.origins = list(dict.fromkeys(origins))

    @property
    def is_enabled(self) -> bool:
        return self.disabled_at is None

    @property
    def sealed_secrets(self) -> list[str]:
        """The stored secrets that sign messages, newest first."""
        return [secret for secret in (self.current_secret, self.previous_secret) if secret]


class Subject(models.Model):
    """A call, sponsored call or subscription whose events an endpoint receives, and the last state sent."""

    class Kind(models.TextChoices):
        CALL = "call"
        SPONSORED = "sponsored"
        SUBSCRIPTION = "subscription"

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="subjects", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    kind = models.CharField(max_length=12, choices=Kind)
    row_id = models.BigIntegerField(help_text="Id of the relay transaction, sponsored call or subscription.")
    # For a call: whether it has unsent events, because it is not settled or its settlement has no message yet.
    is_open = models.BooleanField(default=True)
    # For a subscription: the state in the last message.
    state = models.JSONField(default=dict)
    changed_at = ClockField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "row_id", "endpoint"], name="webhooks_subject_once"),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(kind="call", is_open=True), name="webhooks_subject_open"),
            models.Index(
                fields=["row_id"],
                condition=Q(kind="sponsored", is_open=True),
                name="webhooks_subject_sponsored",
            ),
        ]

    def __str__(self) -> str:
        return self.ordering_key

    @property
    def ordering_key(self) -> str:
        return f"{self.kind}:{self.row_id}"


class CreditState(models.TextChoices):
    """A person's credits compared with their use; `rules` has the thresholds."""

    ENOUGH = "enough"
    LOW = "low"
    DEPLETED = "depleted"


class CreditLevel(models.Model):
    """The state of a person's credits when they were last read."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    state = models.CharField(max_length=8, choices=CreditState, default=CreditState.ENOUGH)
    balance = models.BigIntegerField(default=0, help_text="Credits at which the state began.")
    crossings = models.PositiveIntegerField(default=0, help_text="Events so far; numbers them.")
    use = models.BigIntegerField(default=0, help_text="Credits charged per day of the last 14 days.")
    use_read_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.user_id}: {self.state}"


class SponsorLevel(models.Model):
    """Whether a sponsor had fewer credits than its alarm when they were last read."""

    sponsor = models.OneToOneField("sponsors.Sponsor", models.CASCADE, related_name="level")
    is_low = models.BooleanField(default=False)
    crossings = models.PositiveIntegerField(default=0, help_text="Events so far; numbers them.")

    def __str__(self) -> str:
        return f"{self.sponsor_id}: {'low' if self.is_low else 'enough'}"


class PolicyLevel(models.Model):
    """How much of a policy's number of new profiles was used when its sponsor was last told."""

    policy = models.ForeignKey("sponsors.Policy", models.CASCADE, related_name="levels", db_index=False)
    scope = models.CharField(max_length=8, choices=UsageScope)
    begins = models.DateTimeField(help_text="When the window begins; 1970-01-01 counts all time.")
    number = models.BigIntegerField(help_text="The new profiles that the terms allowed then.")
    percent = models.PositiveSmallIntegerField(help_text="The part of the number that was told.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["policy", "scope"], name="webhooks_policylevel_once"),
        ]

    def __str__(self) -> str:
        return f"{self.policy_id}, {self.scope}: {self.percent} %"


class MessageStatus(models.TextChoices):
    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given-up", "given up"


_WAITING = Q(status=MessageStatus.WAITING)


class Message(models.Model):
    """
    One event for one endpoint, stored as the text that is signed and sent.

    Messages of one `ordering_key` are delivered in the order of their ids. `event_id` identifies the event to the
    receiver and is the same in every attempt.
    """

    Status: TypeAlias = MessageStatus

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="messages", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")
    event_id = models.UUIDField(unique=True, default=uuid.uuid4)
    type = models.CharField(max_length=40, choices=EventType)
    key = models.CharField(max_length=100, help_text="Names the event; an endpoint gets it once.")
    ordering_key = models.CharField(max_length=100)
    body = models.TextField()
    status = models.CharField(max_length=9, choices=MessageStatus, default=MessageStatus.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = ClockField()
    finished_at = models.DateTimeField(null=True)
    created_at = ClockField()

    class Meta:
        permissions = [("resend_message", "Can send a message again")]
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "key"], name="webhooks_message_once"),
            models.CheckConstraint(
                condition=Q(status=MessageStatus.WAITING, finished_at=None)
                | (~_WAITING & Q(finished_at__isnull=False)),
                name="webhooks_message_finished_has_time",
            ),
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=_WAITING, name="webhooks_message_due"),
            models.Index(
                fields=["endpoint", "ordering_key", "id"], condition=_WAITING, name="webhooks_message_order"
            ),
            models.Index(
                fields=["endpoint", "finished_at"],
                condition=Q(status=MessageStatus.GIVEN_UP),
                name="webhooks_message_given_up",
            ),
            models.Index(fields=["finished_at"], name="webhooks_message_finished"),
            models.Index(fields=["endpoint", "-id"], name="webhooks_message_newest"),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def public_id(self) -> str:
        """The event's id as sent to the receiver."""
        return f"msg_{self.event_id.hex}"


class NoticeAddress(models.Model):
    """
    The e-mail address at which an account holder wants notices about credits.

    Before its owner has confirmed it, only the request for confirmation is sent to it.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    email = models.EmailField()
    language = models.CharField(max_length=16)
    confirmed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "notice addresses"
        indexes = [
            models.Index(
                fields=["user"], condition=Q(confirmed_at__isnull=False), name="webhooks_address_confirmed"
            )
        ]

    def __str__(self) -> str:
        return f"address of {self.user_id}"


class Notice(models.Model):
    """One e-mail to an account holder; its row is the only state that sending needs after a crash."""

    class Kind(models.TextChoices):
        CONFIRM = "confirm", "question whether the address is right"
        LOW = EventType.CREDITS_LOW.value, "credits are low"
        DEPLETED = EventType.CREDITS_DEPLETED.value, "credits are used up"
        RECOVERED = EventType.CREDITS_RECOVERED.value, "credits are enough again"
        EXPIRING = EventType.CREDITS_EXPIRING.value, "credits expire soon"
        SPONSOR_LOW = EventType.SPONSOR_LOW.value, "a sponsor's credits are low"
        SPONSOR_RECOVERED = EventType.SPONSOR_RECOVERED.value, "a sponsor's credits are enough again"
        SPONSOR_PROFILES_LOW = (
            EventType.SPONSOR_PROFILES_LOW.value,
            "a policy's number of new profiles is used, or nearly",
        )
        SPONSOR_SERVER = "sponsor.server", "a sponsor's server has begun to fail"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20, choices=Kind)
    key = models.CharField(max_length=100, unique=True, help_text="Names the event; its person gets it once.")
    data = models.JSONField(default=dict)
    status = models.CharField(max_length=9, choices=MessageStatus, default=MessageStatus.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = ClockField()
    finished_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, default="", help_text="Of the last attempt.")
    created_at = ClockField()

    class Meta:
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=_WAITING, name="webhooks_notice_due"),
            models.Index(fields=["finished_at"], name="webhooks_notice_finished"),
        ]

    def __str__(self) -> str:
        return self.key


class Delivery(models.Model):
    """One delivery attempt, and the receiver's response."""

    message = models.ForeignKey(Message, models.CASCADE, related_name="deliveries")
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    milliseconds = models.PositiveIntegerField()
    response_status = models.PositiveSmallIntegerField(null=True)
    response = models.TextField(blank=True, default="", help_text="The beginning of the response.")
    error = models.TextField(blank=True, default="")

    class Meta:
        verbose_name_plural = "deliveries"

    def __str__(self) -> str:
        return f"attempt {self.number}"


class Cursor(models.Model):
    """The time up to which the rows of one source have been read for new messages."""

    source = models.CharField(max_length=20, unique=True)
    read_until = models.DateTimeField()

    def __str__(self) -> str:
        return self.source
