"""`manage.py reconcile_credits`: is every credit explained?"""

from typing import Any

from django.utils import timezone

from credits.services import reconciliation
from gateway.common.commands import ReconciliationCommand


class Command(ReconciliationCommand):
    help = "Recompute every balance, version chain and held sum from the rows; exit 1 on any difference."

    def handle(self, *args: Any, **options: Any) -> None:
        self.report(reconciliation.reconcile(now=timezone.now()))
