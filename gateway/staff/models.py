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
    """A decision of staff to pause a part of the service, or to resume it. The newest one of a name counts."""

    name = models.CharField(max_length=40, help_text="What is paused or resumed.")
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
    A stock that members of staff take from alone, such as credits.

    Its row is locked while the amounts of 24 hours are summed, so that the second of two concurrent requests counts
    the first.
    """

    name = models.CharField(max_length=20, primary_key=True)

    def __str__(self) -> str:
        return self.name


class ApprovalRequestQuerySet(models.QuerySet["ApprovalRequest"]):
    def waiting(self) -> "ApprovalRequestQuerySet":
        """Keep those that a second person may still decide, by the database's clock."""
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
        max_length=64, blank=True, help_text="The row it is about; empty for a new one."
    )
    subject = models.CharField(max_length=200, help_text="What it is about, in words.")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="approvals", db_index=False,
        help_text="Whose credits it moves.",
    )  # fmt: skip
    pool = models.CharField(max_length=20, blank=True, default="", help_text="What limits are counted in.")
    amount = models.BigIntegerField(default=0, help_text="What it takes from the pool.")
    # What carrying it out needs; it may hold hashes of new secrets and is shown to nobody.
    payload = models.JSONField()
    changes: Any = models.JSONField(help_text="What it changes, from and to, when it was asked for.")
    reason = models.TextField()
    key = models.CharField(max_length=255, unique=True, help_text="The same key asks once.")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False
    )
    requested_roles = ArrayField(models.CharField(max_length=150), help_text="Roles of the asker, then.")
    needs_second_person = models.BooleanField(help_text="It was above what one person may do.")
    status = models.CharField(max_length=10, choices=Status, default=Status.WAITING)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False,
        help_text="Who approved or rejected it; empty where nobody else was needed.",
    )  # fmt: skip
    decision_reason = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(help_text="Nobody can approve it from then on.")
    decided_at = models.DateTimeField(null=True)
    made_type = models.ForeignKey(ContentType, models.PROTECT, null=True, related_name="+", db_index=False)
    made_id = models.CharField(
        max_length=64, blank=True, default="", help_text="The row that carrying it out has made, if any."
    )

    objects = ApprovalRequestQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        permissions = [
            ("decide_approvalrequest", "Can approve or reject what somebody of another role asked for")
        ]
        indexes = [
            models.Index(fields=["created_at"], condition=Q(status="waiting"), name="approval_waiting"),
            # What was taken from a pool lately.
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
                violation_error_message="A second person decides.",
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
