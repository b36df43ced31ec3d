"""`manage.py reconcile_payments`: does Stripe say what our rows say?"""

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from gateway.common.commands import ComparingCommand
from payments.errors import BillingUnavailable
from payments.services.reconciliation import runs


class Command(ComparingCommand):
    help = "Compare customers, subscriptions, payouts and clawbacks with Stripe; exit 1 on any difference."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, default=runs.DAYS, help="how far back invoices are compared")
        parser.add_argument(
            "--minutes", type=int, default=runs.MINUTES, help="what began later is not missed yet"
        )
        parser.add_argument(
            "--repair",
            action="store_true",
            help="pay out invoices and claw back refunds that were missed; nothing else is changed",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            run = runs.reconcile(
                now=timezone.now(),
                days=options["days"],
                minutes=options["minutes"],
                repair=options["repair"],
            )
        except BillingUnavailable as away:
            raise CommandError(f"Nothing can be said: {away.detail}", returncode=2) from away
        self.report(run)
