"""`manage.py adjust_credits`: correct a user's balance by hand, with a reason."""

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from credits.errors import KeyConflict
from credits.services import entries
from gateway.common.errors import ReasonRequired
from gateway.common.fields import SAFE_INTEGER_MAX
from users.queries import owner_of, staff_named


class Command(BaseCommand):
    help = "Add credits to a user's balance, or take some away, by an entry that names the reason."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("address", help="the user's Universal Profile, in any casing")
        parser.add_argument("amount", type=int, help="whole credits, negative to take away")
        parser.add_argument("--reason", required=True, help="why, for finance and support to read")
        parser.add_argument("--actor", help="username of the member of staff who decides it")
        parser.add_argument("--key", help="posts once per key; a fresh one by default")

    def handle(self, *args: Any, **options: Any) -> None:
        amount: int = options["amount"]
        if amount == 0 or abs(amount) > SAFE_INTEGER_MAX:
            raise CommandError(f"Adjust by 1 to {SAFE_INTEGER_MAX} credits, either way.")
        user = owner_of(options["address"])
        if user is None:
            raise CommandError(f"No user has the profile {options['address']}.")
        actor = staff_named(options["actor"]) if options["actor"] else None
        if options["actor"] and actor is None:
            raise CommandError(f"No member of staff is called {options['actor']}.")
        key = options["key"] or f"adjust:{uuid.uuid4()}"
        try:
            entry = entries.adjust(user=user, credits=amount, key=key, actor=actor, reason=options["reason"])
        except (KeyConflict, ReasonRequired) as refusal:
            raise CommandError(refusal.detail) from refusal
        self.stdout.write(
            f"{user.profile_address}: {entry.balance_before} -> {entry.balance_after} credits ({entry.key})"
        )
