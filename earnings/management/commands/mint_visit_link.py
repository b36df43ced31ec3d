"""`manage.py mint_visit_link`: print a link that earns its user credits for one visit."""

import uuid
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.management.base import CommandError, CommandParser

from earnings.services.push import request_visit_link
from gateway.common.crypto import SealedUnderAnotherKey
from gateway.common.errors import DomainError
from gateway.staff import approvals
from users.management.approval_command import ApprovalCommand
from users.queries import owner_of


class Command(ApprovalCommand):
    help = (
        "Print a link for one push notification. Its first visit earns the user the amount, once. Above the limits "
        "of staff, a second person decides in the admin; the same key then prints the link."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("address", help="the user's Universal Profile, in any casing")
        parser.add_argument("campaign", help="the campaign's name")
        parser.add_argument("--amount", default="1", help="units of the visit link's rate (default: 1)")
        parser.add_argument("--hours", type=int, default=24, help="lifetime in hours (default: 24)")
        parser.add_argument("--key", help="idempotency key; a random one by default")

    def handle(self, *args: Any, **options: Any) -> None:
        user = owner_of(options["address"])
        if user is None:
            raise CommandError(f"No user has the profile {options['address']}.")
        key = options["key"] or f"visit:{uuid.uuid4()}"
        try:
            approval, link = request_visit_link(
                user=user,
                campaign=options["campaign"],
                amount=Decimal(options["amount"]),
                lifetime=timedelta(hours=options["hours"]),
                actor=self.actor(options),
                reason=options["reason"],
                key=key,
            )
        except (ValueError, OverflowError) as error:
            raise CommandError(str(error)) from error
        except InvalidOperation as error:
            raise CommandError("The amount must be a number.") from error
        except SealedUnderAnotherKey as error:
            raise CommandError("No key in AD_NETWORK_SECRET_KEYS decrypts the secret.") from error
        except DomainError as refusal:
            raise CommandError(refusal.detail) from refusal
        self.stdout.write(
            link or f"{approvals.outcome_of(approval, '')} Then run this again with --key {key}"
        )
