"""Whether users may check in: the newest row decides, and the older ones record who decided what, and why."""

from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class CheckInSwitch(models.Model):
    """A decision of staff to pause check-ins, or to let them go on. Without any row they go on."""

    is_open = models.BooleanField(help_text="Users may check in.")
    reason = models.TextField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "pause"
        constraints = [
            models.CheckConstraint(condition=~models.Q(reason=""), name="checkin_switch_has_reason")
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)
        ]

    def __str__(self) -> str:
        return "opened" if self.is_open else "paused"
