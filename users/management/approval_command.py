"""Base of commands that request an approval: the actor and the reason."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.common.errors import complaint_about
from users.models import User
from users.queries import staff_named


def _reason(text: str) -> str:
    if complaint := complaint_about(text):
        raise ArgumentTypeError(complaint)
    return text


class ApprovalCommand(BaseCommand):
    """
    Requests an approval in the name of a member of staff.

    The request waits in the admin's queue for a person with another role.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--actor", required=True, help="username of the requesting member of staff")
        why = "the reason, for the approver and the audit log"
        parser.add_argument("--reason", required=True, type=_reason, help=why)

    def actor(self, options: dict[str, Any]) -> User:
        actor = staff_named(options["actor"])
        if actor is None:
            raise CommandError(f"No active member of staff is named {options['actor']}.")
        return actor
