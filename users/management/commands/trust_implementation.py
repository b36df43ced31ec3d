"""`manage.py trust_implementation KIND --address 0x… --name …`: trust contract code from the command line."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.common.fields import checksum
from users.models import TrustedImplementation
from users.services import trusted_code


class Command(BaseCommand):
    help = "Trust a contract implementation that profiles or key managers delegate to."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=TrustedImplementation.Kind.values)
        parser.add_argument("--address", required=True, help="Address of the implementation contract.")
        parser.add_argument("--name", required=True, help="Which release this is.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            address = checksum(options["address"])
        except ValueError as error:
            raise CommandError("--address is not a 20-byte hex address.") from error
        added = trusted_code.trust(kind=options["kind"], address=address, name=options["name"])
        self.stdout.write(f"{'trusted' if added else 'already trusted'}: {options['kind']} {address}")
