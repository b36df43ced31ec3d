"""`manage.py create_staff NAME --role …`: make one of the first two members of staff, or let such a one in again."""

from base64 import b32encode
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from users.errors import StaffStarted
from users.services import staff


class Command(BaseCommand):
    help = "Make one of the first two members of staff, and print what they log in with; refused once there are two."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--role", required=True, choices=staff.FIRST_ROLES)
        parser.add_argument(
            "--reset",
            action="store_true",
            help="new password and phone for the only one of the role, whom nobody else can help",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["reset"]:
                password = staff.reset_only_one(username=options["username"], role=options["role"])
                self.stdout.write(f"password: {password}")
                self.stdout.write("It is not shown again. The next login with it sets up a phone.")
                return
            access = staff.begin(username=options["username"], role=options["role"])
        except StaffStarted as refusal:
            raise CommandError(refusal.detail) from refusal
        self.stdout.write(f"password: {access.password}")
        self.stdout.write(f"key for the authenticator app: {b32encode(bytes.fromhex(access.key)).decode()}")
        self.stdout.write("Neither is shown again. Change the password at /admin/password_change/.")
