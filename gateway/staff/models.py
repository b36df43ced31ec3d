"""The audit log (Django's log of the admin, made append-only by triggers), pauses, and approval requests."""

from typing import Any, ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from gateway.common.models import APPEND_ONLY, never_emptied
from gateway.staff import audit

_REQUEST = '"requestId": "([^"]+)"'


class StaffAction(LogEntry):
    """One action of a member of staff: Django's `LogEntry`, which a trigger makes append-only."""

    class Meta:
        proxy = True
        verbose_name = "staff action"
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY, never_emptied("the audit log")]

    @classmethod
    def of_request(cls, request_id: str) -> "QuerySet[StaffAction]":
        entries = cls._default_manager.alias(request_id=audit.extracted(_REQUEST))
        rows: QuerySet[Any] = entries.filter(request_id=request_id)
        return rows


class Pause(models.Model):
    """A decision of staff to pause or resume a part of the service. The newest row of a name counts."""

    name = models.CharField(max_length=40, help_text="The part that is paused or resumed.")
    is_paused = models.BooleanField()
    reason = models.TextField("why")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, verbose_name="by", related_name="+", db_index=False
    )
    created_at = models.DateTimeField("when", db_default=Now())

    class Meta:
        verbose_name, verbose_name_plural = "pause or resumption", "pauses and resumptions"
        indexes = [models.Index(fields=["name", "-id"], name="pause_newest")]
        constraints = [models.CheckConstraint(condition=~models.Q(reason=""), name="pause_has_reason")]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return f"{self.name.replace('_', '-')} {'paused' if self.is_paused else 'resumed'}"


class ApprovalPool(models.Model):
    """
    A pool whose limits are shared by all staff, such as credits.

    `ask` locks its row while it sums the amounts of 24 hours, so the second of two concurrent requests sees the first.
    """

    name = models.CharField(max_length=20, primary_key=True)

    def __str__(self) -> str:
        return self.name


class ApprovalRequestQuerySet(models.QuerySet["ApprovalRequest"]):
    def waiting(self) -> "ApprovalRequestQuerySet":
        """Requests that can still be decided, by the database's clock."""
        return self.filter(status=ApprovalRequest.Status.WAITING, expires_at__gt=Now())


class ApprovalRequest(models.Model):
    """
    A member of staff's request to create or price credits, and its outcome.

    `gateway.staff.approvals` decides whether it is carried out at once or waits for a second person.
    """

    class Status(models.TextChoices):
        WAITING = "waiting", "Waits for a second person"
        DONE = "done", "Carried out"
        REJECTED = "rejected", "Rejected"

    kind = models.CharField(max_length=40)
    content_type = models.ForeignKey(ContentType, models.PROTECT, related_name="+", db_index=False)
    object_id = models.CharField(
        max_length=64, blank=True, help_text="The row to change; empty for a new one."
    )
    subject = models.CharField(max_length=200, help_text="The subject as text.")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="approvals", db_index=False,
        help_text="The user whose credits it moves.",
    )  # fmt: skip
    pool = models.CharField(
        max_length=20, blank=True, default="", help_text="The pool that limits are counted in."
    )
    amount = models.BigIntegerField(default=0, help_text="The amount counted in the pool.")
    # The input of `carry_out`. It may contain hashes of new secrets, so no page shows it.
    payload = models.JSONField()
    changes: Any = models.JSONField(help_text="Old and new values at the time of the request.")
    reason = models.TextField()
    key = models.CharField(max_length=255, unique=True, help_text="The idempotency key of the request.")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False
    )
    requested_roles = ArrayField(
        models.CharField(max_length=150), help_text="The requester's roles at that time."
    )
    needs_second_person = models.BooleanField(
        help_text="Whether the amount was above the limits of one person."
    )
    status = models.CharField(max_length=10, choices=Status, default=Status.WAITING)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False,
        help_text="Who approved or rejected it; empty if no second person was needed.",
    )  # fmt: skip
    decision_reason = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(help_text="It can be approved until then.")
    decided_at = models.DateTimeField(null=True)
    made_type = models.ForeignKey(ContentType, models.PROTECT, null=True, related_name="+", db_index=False)
    made_id = models.CharField(
        max_length=64, blank=True, default="", help_text="The row that it created, if any."
    )

    objects = ApprovalRequestQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        permissions = [("decide_approvalrequest", "Can approve or reject requests of another role")]
        indexes = [
            models.Index(fields=["created_at"], condition=Q(status="waiting"), name="approval_waiting"),
            # Serves the sum of a pool's amounts in the last 24 hours.
            models.Index(fields=["pool", "decided_at"], condition=Q(status="done"), name="approval_taken"),
        ]
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="approval_has_reason"),
            models.CheckConstraint(condition=Q(amount__gte=0), name="approval_amount_not_negative"),
            models.CheckConstraint(
                condition=Q(status="waiting", decided_by=None, decided_at=None)
                | Q(status="done", decided_at__isnull=False)
                & (Q(needs_second_person=False) | Q(decided_by__isnull=False))
                | Q(status="rejected", decided_by__isnull=False, decided_at__isnull=False),
                name="approval_decision_fits_columns",
            ),
            models.CheckConstraint(
                condition=Q(decided_by=None) | ~Q(decided_by=F("requested_by")),
                name="approval_second_person",
                violation_error_message="A second person has to decide.",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(name="never_deleted", operation=pgtrigger.Delete),
            pgtrigger.Protect(
                name="decided_once", operation=pgtrigger.Update, condition=~pgtrigger.Q(old__status="waiting")
            ),
            pgtrigger.Protect(
                name="asked_for_good",
                operation=pgtrigger.Update,
                condition=pgtrigger.AnyChange(
                    "kind", "content_type", "object_id", "person", "pool", "amount", "payload", "changes",
                    "reason", "key", "requested_by", "requested_roles", "needs_second_person", "created_at",
                    "expires_at",
                ),
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"request {self.pk}: {self.subject}"
