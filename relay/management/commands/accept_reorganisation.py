"""`manage.py accept_reorganisation`: let the relay continue after a reorganisation that replaced a final block."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.chain.config import on_chain
from relay.management.chains import add_chain
from relay.services.settling import reorganisations


class Command(BaseCommand):
    help = (
        "Compare everything settled above a block with the chain again, final or not; "
        "the relay worker then reopens calls whose blocks are no longer in the chain."
    )
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        add_chain(parser)
        parser.add_argument(
            "--from-block",
            type=int,
            required=True,
            help="the newest block that the old and the new chain have in common, or one below it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with on_chain(options["chain"]):
                block = reorganisations.accept_chain(from_height=options["from_block"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Block {block.number} ({block.block_hash}) is final; what came later is compared.")
