"""The audit log (Django's log of the admin, which nobody alters), and decisions to pause a part of the service."""

from typing import Any, ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.db import models
from django.db.models import QuerySet
from django.db.models.functions import Now

from gateway.admin import audit
from gateway.common.db import APPEND_ONLY, never_emptied

# Django's table is not ours to declare indexes on; the migration runs these.
INDEXES = {
    "gateway_admin_staffaction_decision": """
        CREATE UNIQUE INDEX gateway_admin_staffaction_decision ON django_admin_log
        (substring(change_message from '"decision": "([^"]+)"'))
        WHERE change_message LIKE '%"decision": "%'
    """,
    "gateway_admin_staffaction_request": """
        CREATE INDEX gateway_admin_staffaction_request ON django_admin_log
        (substring(change_message from '"requestId": "([^"]+)"'))
    """,
    "gateway_admin_staffaction_row": """
        CREATE INDEX gateway_admin_staffaction_row ON django_admin_log (object_id, content_type_id)
    """,
}
_REQUEST = '"requestId": "([^"]+)"'


class StaffAction(LogEntry):
    """What a member of staff did; the row is Django's, and stays as it was written."""

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
    reason = models.TextField()
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["name", "-id"], name="pause_newest")]
        constraints = [models.CheckConstraint(condition=~models.Q(reason=""), name="pause_has_reason")]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return f"{self.name} {'paused' if self.is_paused else 'resumed'}"
