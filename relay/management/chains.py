"""The option with which commands name a chain."""

from django.core.management.base import CommandParser

from gateway.chain.config import chains, home


def add_chain(parser: CommandParser) -> None:
    """Add `--chain`, the id of a chain of the service; home by default."""
    parser.add_argument(
        "--chain",
        type=int,
        choices=[chain.id for chain in chains()],
        default=home().id,
        help="the id of the chain (default: the home chain)",
    )
