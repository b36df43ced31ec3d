"""`manage.py audit_ledger`: compare every entry with its signed root."""

from typing import Any

from credits.management.commands.reconcile_credits import ReconciliationCommand
from gateway.common import clock
from proofs.services import audit


class Command(ReconciliationCommand):
    help = "Compute every signed root from the entries again; exit 1 on any difference."

    def handle(self, *args: Any, **options: Any) -> None:
        self.report(audit.audit(now=clock.now()))
