"""`manage.py adjust_credits`: correct a user's balance by hand, with a reason."""

import uuid
from typing import Any

from django.core.management.base import CommandError, CommandParser

from credits.services import adjustments
from gateway.common.errors import DomainError
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.staff import approvals
from users.management.approval_command import ApprovalCommand
from users.queries import owner_of


class Command(ApprovalCommand):
    help = "Request an adjustment of a user's balance. Above the limits of staff, a second person decides in the admin."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("address", help="the user's Universal Profile, in any casing")
        parser.add_argument("amount", type=int, help="whole credits, negative to take away")
        parser.add_argument("--key", help="idempotency key; a random one by default")

    def handle(self, *args: Any, **options: Any) -> None:
        amount: int = options["amount"]
        if amount == 0 or abs(amount) > SAFE_INTEGER_MAX:
            raise CommandError(f"Adjust by 1 to {SAFE_INTEGER_MAX} credits, up or down.")
        user = owner_of(options["address"])
        if user is None:
            raise CommandError(f"No user has the profile {options['address']}.")
        actor = self.actor(options)
        key = options["key"] or f"adjust:{uuid.uuid4()}"
        try:
            approval = adjustments.request(
                user=user, credits=amount, key=key, actor=actor, reason=options["reason"]
            )
        except DomainError as refusal:
            raise CommandError(refusal.detail) from refusal
        done = approvals.outcome_of(approval, f"{amount:+d} credits were posted.")
        self.stdout.write(f"{user.profile_address}: {done} ({key})")
