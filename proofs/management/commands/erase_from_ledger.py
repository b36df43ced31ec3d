"""`manage.py erase_from_ledger`: erase the texts that the ledger holds about a person."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from proofs.services.erasure import EntriesStillOpen, erase
from users.queries import owner_of


class Command(BaseCommand):
    help = "Delete the salt and the reasons of a user's entries; proofs stay valid. Needs the owner's DATABASE_URL."
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("address", help="the user's Universal Profile, in any casing")

    def handle(self, *args: Any, **options: Any) -> None:
        user = owner_of(options["address"])
        if user is None:
            raise CommandError(f"No user has the profile {options['address']}.")
        try:
            count = erase(user=user)
        except EntriesStillOpen as still_open:
            raise CommandError(f"{still_open}; run close_ledger_roots first.") from still_open
        self.stdout.write(f"{count} entries have no texts any more.")
