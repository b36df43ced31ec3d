"""Reconciliations: what each comparison of our rows with Stripe has found."""

from django.db import models
from django.db.models import F, Q


class ReconciliationRun(models.Model):
    """
    One comparison. `finished_at` is empty while it runs, and for good where it broke off.

    `counts` says how much of everything was compared, how many findings there were, and how many of
    them a repair has made up for. `findings` holds those that are left, each with `rule`, `have` (our
    row), `wanted` (what Stripe says, or our other rows) and `ids`.
    """

    class Kind(models.TextChoices):
        """What was compared."""

        STRIPE = "stripe"

    kind = models.CharField(max_length=16, choices=Kind)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    counts = models.JSONField(default=dict)
    findings = models.JSONField(default=list)

    class Meta:
        permissions = [("run_reconciliation", "Can run the reconciliation")]
        constraints = [
            models.CheckConstraint(
                condition=Q(finished_at__isnull=True) | Q(finished_at__gte=F("started_at")),
                name="reconciliationrun_times_in_order",
            )
        ]
        indexes = [models.Index(fields=["kind", "-started_at"], name="reconciliationrun_newest")]

    def __str__(self) -> str:
        return f"{self.kind} {self.started_at:%Y-%m-%d %H:%M}"
