"""The audit log: Django's log of the admin, which nobody alters."""

import json
from typing import Any, ClassVar

import pgtrigger
from django.contrib.admin.models import LogEntry


class StaffAction(LogEntry):
    """What a member of staff did; the row is Django's, and stays as it was written."""

    class Meta:
        proxy = True
        verbose_name = "staff action"
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)
        ]

    @property
    def details(self) -> dict[str, Any]:
        """Return action, reason, changes and request id; empty for entries of Django's own."""
        if not self.change_message.startswith("["):
            return {}
        found = (part for part in json.loads(self.change_message) if "requestId" in part)
        return next(found, {})
