"""`manage.py create_staff NAME --role …`: create one of the first three staff accounts, or reset one."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from users.errors import StaffStarted
from users.services import staff


class Command(BaseCommand):
    help = "Create one of the first three staff accounts and print its credentials; refused once there are three."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--role", required=True, choices=staff.FIRST_ROLES)
        parser.add_argument(
            "--reset",
            action="store_true",
            help="reset password and phone of the only account of operations or finance; no one else can reset it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["reset"]:
                password = staff.reset_only_one(username=options["username"], role=options["role"])
                self.stdout.write(f"password: {password}")
                self.stdout.write("It is shown only now. The next login sets up a phone.")
                return
            access = staff.begin(username=options["username"], role=options["role"])
        except StaffStarted as refusal:
            raise CommandError(refusal.detail) from refusal
        self.stdout.write(f"password: {access.password}")
        self.stdout.write(f"key for the authenticator app: {access.key}")
        self.stdout.write("Both are shown only now. Change the password at /admin/password_change/.")
