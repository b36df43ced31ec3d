"""Base of commands that request an approval: the actor and the reason."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from users.models import User
from users.queries import staff_named


class ApprovalCommand(BaseCommand):
    """
    Requests an approval in the name of a member of staff.

    The request waits in the admin's queue for a person with another role.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--actor", required=True, help="username of the requesting member of staff")
        parser.add_argument("--reason", required=True, help="the reason, for the approver and the audit log")

    def actor(self, options: dict[str, Any]) -> User:
        actor = staff_named(options["actor"])
        if actor is None:
            raise CommandError(f"There is no member of staff named {options['actor']}.")
        return actor
