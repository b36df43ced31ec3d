"""`manage.py list_unrecorded`: find transactions of our relayers that no row records."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from gateway.chain.config import on_chain
from gateway.chain.errors import NodeUnavailable
from relay.management.chains import add_chain
from relay.services.settling import unrecorded


class Command(BaseCommand):
    help = "List transactions of the relayers and the treasury that no row records; exit 1 if there are any."

    def add_arguments(self, parser: CommandParser) -> None:
        add_chain(parser)
        parser.add_argument(
            "--from-block",
            type=int,
            help="the first block to read (default: the last one that the rows explain)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with on_chain(options["chain"]):
                report = unrecorded.report(from_block=options["from_block"])
        except NodeUnavailable as error:
            raise CommandError(error.detail, returncode=2) from error
        except unrecorded.BlockUnknown as error:
            raise CommandError(f"{error} Use --from-block.", returncode=2) from error
        if report.from_block is None:
            self.stdout.write(f"The rows explain every account nonce up to block {report.to_block}.")
            return
        for one in report.transactions:
            self.stdout.write(_line(one))
        read = f"Blocks {report.from_block} to {report.to_block} were read"
        if report.transactions:
            raise CommandError(f"{read}; {len(report.transactions)} transactions in them are not recorded.")
        self.stdout.write(f"{read}; every transaction in them is recorded.")


def _line(one: unrecorded.Unrecorded) -> str:
    sent = one.sent
    words = [
        sent.transaction_hash,
        f"block {sent.receipt.block_number}",
        f"{sent.sender} account nonce {sent.account_nonce}",
        "succeeded" if sent.receipt.succeeded else "failed",
    ]
    if one.profile_address:
        user = f"user {one.user_id}" if one.user_id else "no user"
        words += [f"call of {one.profile_address} ({user})", f"{one.credits} credits"]
    else:
        words.append(f"to {sent.to}")
    if one.relay_transaction_id:
        words.append(f"the call of row {one.relay_transaction_id} under another hash")
    return ", ".join(words)
