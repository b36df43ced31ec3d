"""`manage.py sync_relayers`: write rows for new relayer keys and read all accounts from the chain."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.chain.config import get_chain, on_chain
from gateway.chain.errors import NodeUnavailable
from gateway.chain.signing import NoSigner
from gateway.common import clock
from relay.management.chains import add_chain
from relay.models import Relayer
from relay.services.fleet import relayers
from relay.services.sending import funding


class Command(BaseCommand):
    """Register relayers, and list them and the treasury."""

    help = "Write rows for new relayer keys, read nonces and balances, and list relayers and treasury."

    def add_arguments(self, parser: CommandParser) -> None:
        add_chain(parser)
        parser.add_argument(
            "--at-least", type=int, default=0, help="Fail if an active relayer holds less wei."
        )
        parser.add_argument(
            "--believe-node",
            action="store_true",
            help="Accept a single node's report even if it quarantines most relayers, as after a restore.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with on_chain(options["chain"]):
            self._sync(options)

    def _sync(self, options: dict[str, Any]) -> None:
        now = clock.now()
        try:
            added = relayers.sync(now=now, trusts_single_node=options["believe_node"])
            treasury = funding.read_treasury(now=now)
        except NodeUnavailable as error:
            raise CommandError(error.detail) from error
        except NoSigner as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{added} registered")
        for relayer in Relayer.objects.filter(chain_id=get_chain().id).order_by("pk"):
            self.stdout.write(
                f"{relayer.address} {relayer.state} next nonce {relayer.next_account_nonce}"
                f" in flight {relayer.in_flight} balance {relayer.balance_wei} wei"
            )
        if treasury is not None:
            self.stdout.write(
                f"{treasury.address} treasury balance {treasury.balance_wei} wei, sent within 24 hours"
                f" {funding.sent_in_last_day(now=now)} of {get_chain().funding.daily_wei} wei"
            )
        _require(options["at_least"])


def _require(balance_wei: int) -> None:
    rows = Relayer.objects.filter(chain_id=get_chain().id, is_active=True, balance_wei__lt=balance_wei)
    underfunded = rows.order_by("pk")
    if underfunded:
        raise CommandError(f"Fund {', '.join(relayer.address for relayer in underfunded)}.")
