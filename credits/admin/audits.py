"""The findings of each recomputation of the books."""

from django.contrib import admin

from credits.models import LedgerAudit
from gateway.common.admin import ReadOnlyAdmin


@admin.register(LedgerAudit)
class LedgerAuditAdmin(ReadOnlyAdmin):
    """Runs by night, by hand or by command; a page of its own compares anew."""

    list_display = ("started_at", "finished_at", "kind", "result")
    list_filter = ("kind",)
    list_defer = ("findings",)
    ordering = ("-started_at",)

    @admin.display(description="result")
    def result(self, run: LedgerAudit) -> str:
        return "unfinished" if run.finished_at is None else f"{run.counts.get('findings', 0)} findings"
