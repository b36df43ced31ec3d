"""`manage.py reconcile_payments`: compare our rows with Stripe's."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from credits.management.commands.reconcile_credits import ReconciliationCommand
from gateway.common import clock
from payments.errors import BillingUnavailable
from payments.services import reconciliation


class Command(ReconciliationCommand):
    help = "Compare customers, subscriptions, payouts and clawbacks with Stripe; exit 1 on any difference."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--days", type=int, default=reconciliation.DAYS, help="how far back invoices are compared"
        )
        parser.add_argument(
            "--minutes", type=int, default=reconciliation.MINUTES, help="what began later is not missed yet"
        )
        parser.add_argument(
            "--repair",
            action="store_true",
            help="pay out invoices and claw back refunds that were missed; nothing else is changed",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            run = reconciliation.reconcile(
                now=clock.now(),
                days=options["days"],
                minutes=options["minutes"],
                repair=options["repair"],
            )
        except BillingUnavailable as error:
            raise CommandError(f"The comparison did not run: {error.detail}", returncode=2) from error
        self.report(run)
