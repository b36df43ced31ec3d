"""`manage.py reconcile_relay`: compare captured credits with the gas charged on chain."""

from typing import Any

from django.core.management.base import CommandParser

from credits.management.commands.reconcile_credits import ReconciliationCommand
from gateway.common import clock
from relay.services.settling import reconciliation


class Command(ReconciliationCommand):
    help = "Compare settled calls, holds and receipts with each other and with the nodes; exit 1 on any difference."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--days",
            type=int,
            default=reconciliation.DAYS,
            help="how far back costs are compared",
        )
        parser.add_argument(
            "--receipt-days",
            type=int,
            default=reconciliation.RECEIPT_DAYS,
            help="how far back receipts are compared with the nodes",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.report(
            reconciliation.reconcile(
                now=clock.now(), days=options["days"], receipt_days=options["receipt_days"]
            )
        )
