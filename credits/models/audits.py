"""Audits: what each recomputation of the books from their rows has found."""

from django.db import models
from django.db.models import F, Q


class LedgerAudit(models.Model):
    """
    One recomputation. `finished_at` is empty where it broke off.

    `counts` says how much of everything was compared and how many findings there were; `findings`
    holds the first of them, each with `rule`, `have` (what the row says), `wanted` (what the other
    rows say) and `ids`.
    """

    class Kind(models.TextChoices):
        """What was compared."""

        LEDGER = "ledger", "the ledger with its accounts"
        CHAIN = "chain", "the chain with what was captured"

    kind = models.CharField(max_length=16, choices=Kind)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    counts = models.JSONField(default=dict)
    findings = models.JSONField(default=list)

    class Meta:
        db_table = "credits_ledgeraudit"
        permissions = [("run_ledgeraudit", "Can have the books recomputed")]
        constraints = [
            models.CheckConstraint(
                condition=Q(finished_at__isnull=True) | Q(finished_at__gte=F("started_at")),
                name="credits_ledgeraudit_times_in_order",
            )
        ]
        indexes = [models.Index(fields=["kind", "-started_at"], name="credits_ledgeraudit_newest")]

    def __str__(self) -> str:
        return f"{self.kind} {self.started_at:%Y-%m-%d %H:%M}"
