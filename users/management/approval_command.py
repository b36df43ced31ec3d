"""What commands that ask for something share: who asks, and why."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from users.models import User
from users.queries import staff_named


class ApprovalCommand(BaseCommand):
    """
    Asks for what takes approval, in the name of a member of staff.

    What one person may not do alone waits in the admin's queue, for somebody of another role.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--actor", required=True, help="username of the member of staff who asks")
        parser.add_argument("--reason", required=True, help="why, for those who decide and for the audit log")

    def actor(self, options: dict[str, Any]) -> User:
        actor = staff_named(options["actor"])
        if actor is None:
            raise CommandError(f"No member of staff is called {options['actor']}.")
        return actor
