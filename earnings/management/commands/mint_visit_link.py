"""`manage.py mint_visit_link`: a link that pays its user for one visit."""

from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from earnings.services.push import mint_visit_link
from gateway.common.crypto import SealedUnderAnotherKey
from users.queries import owner_of


class Command(BaseCommand):
    help = "Print a link for one push notification. Its first visit earns the user the amount, once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("address", help="the user's Universal Profile, in any casing")
        parser.add_argument("campaign", help="what the notification is for")
        parser.add_argument("--amount", default="1", help="units of the visit link's rate (default: 1)")
        parser.add_argument("--hours", type=int, default=24, help="how long it lives (default: 24)")

    def handle(self, *args: Any, **options: Any) -> None:
        user = owner_of(options["address"])
        if user is None:
            raise CommandError(f"No user has the profile {options['address']}.")
        try:
            link = mint_visit_link(
                user=user,
                campaign=options["campaign"],
                amount=Decimal(options["amount"]),
                lifetime=timedelta(hours=options["hours"]),
                now=timezone.now(),
            )
        except (ValueError, OverflowError) as error:
            raise CommandError(str(error)) from error
        except InvalidOperation as error:
            raise CommandError("The amount is not a number.") from error
        except SealedUnderAnotherKey as error:
            raise CommandError("No key of AD_NETWORK_SECRET_KEYS opens the secret.") from error
        self.stdout.write(link)
