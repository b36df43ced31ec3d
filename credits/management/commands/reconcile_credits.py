"""`manage.py reconcile_credits`: is every credit explained?"""

from typing import Any

from django.utils import timezone

from credits.services import audits
from gateway.common.comparing import ComparingCommand


class Command(ComparingCommand):
    help = "Recompute every balance, version chain and held sum from the rows; exit 1 on any difference."

    def handle(self, *args: Any, **options: Any) -> None:
        self.report(audits.audit_ledger(now=timezone.now()))
