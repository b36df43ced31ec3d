"""
Find transactions of our accounts that no row records, such as after a restore or a fail-over that lost rows.

Nodes cannot look up a transaction by sender and account nonce, so the service reads whole blocks, starting with the
last one for which the rows explain each relayer's account nonces.
"""

from collections.abc import Collection
from typing import NamedTuple

from django.db import connection, transaction

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.contracts import decode_execute_relay_call
from gateway.chain.types import SentTransaction
from gateway.common.statements import Statements
from relay.models import SQL, Attempt, GapFiller, Relayer, RelayTransaction, TopUp, Treasury
from relay.pricing import credits_of
from relay.queries.prices import current_price
from users.models import User


class _Sql(Statements, file=__file__, shared=SQL):
    first_unexplained: str


class Unrecorded(NamedTuple):
    """A transaction that no row records. For a relay call, also its profile and user, if they can be determined."""

    sent: SentTransaction
    # The wei of a credit for the call: its own price if its row is known, else the chain's.
    credit_wei: int
    profile_address: str | None = None
    user_id: int | None = None
    # The relay transaction with the same call under another hash, if only the row of a replacement is missing.
    relay_transaction_id: int | None = None

    @property
    def credits(self) -> int:
        """The cost of the relay call in credits."""
        return credits_of(self.sent.receipt.cost_wei, credit_wei=self.credit_wei)


class BlockUnknown(Exception):
    """The rows do not tell which block to read first."""


class Report(NamedTuple):
    """The range of blocks read, inclusive, and the unrecorded transactions; `from_block` is None if none was read."""

    from_block: int | None
    to_block: int
    transactions: list[Unrecorded]


def report(*, from_block: int | None = None) -> Report:
    """
    Read the blocks from `from_block`, by default the last one for which the rows explain all account nonces.

    Raises:
        NodeUnavailable: no node responded, or none has all of the blocks.
        BlockUnknown: no `from_block` is given, and it cannot be derived from the rows.
    """
    chain = get_chain()
    relayers = list(Relayer.objects.filter(chain_id=chain.id).order_by("pk"))
    view = get_chain_client().read_chain(
        transaction_hashes=[],
        accounts=[relayer.address for relayer in relayers],
        confirmations=chain.confirmations,
    )
    counts = {relayer.pk: view.account(relayer.address).latest_nonce for relayer in relayers}
    first = _first_unexplained(counts) if from_block is None else from_block
    if first is None:
        return Report(None, view.head.number, [])
    treasuries = Treasury.objects.filter(chain_id=chain.id).values_list("address", flat=True)
    senders = [*(relayer.address for relayer in relayers), *treasuries]
    sent = get_chain_client().read_sent(senders=senders, from_block=first, to_block=view.head.number)
    recorded = _recorded([one.transaction_hash for one in sent])
    price_wei = current_price().credit_wei
    unrecorded = [_explained(one, price_wei) for one in sent if one.transaction_hash not in recorded]
    return Report(first, view.head.number, unrecorded)


def _first_unexplained(counts: dict[int, int]) -> int | None:
    """
    Return the last block up to which the rows explain every relayer's account nonces; None if they explain all.

    Raises:
        BlockUnknown: no call was mined before the first unexplained account nonce.
    """
    params = {"relayers": list(counts), "counts": list(counts.values())}
    with transaction.atomic(), connection.cursor() as cursor:
        # Reading all attempts may take longer than the statement timeout of requests.
        cursor.execute("SET LOCAL statement_timeout = '30min'")
        cursor.execute(_Sql.first_unexplained, params)
        rows: list[tuple[int | None, int, int]] = cursor.fetchall()
    [(first, relayers, recorded)] = rows
    if recorded < relayers:
        raise BlockUnknown("The first block cannot be derived from the rows; name it.")
    return first


def _recorded(hashes: Collection[str]) -> set[str]:
    chain_id = get_chain().id
    return {
        *Attempt.objects.filter(chain_id=chain_id, transaction_hash__in=hashes).values_list(
            "transaction_hash", flat=True
        ),
        *GapFiller.objects.filter(relayer__chain_id=chain_id, transaction_hash__in=hashes).values_list(
            "transaction_hash", flat=True
        ),
        *TopUp.objects.filter(chain_id=chain_id, transaction_hash__in=hashes).values_list(
            "transaction_hash", flat=True
        ),
    }


def _explained(sent: SentTransaction, price_wei: int) -> Unrecorded:
    call = decode_execute_relay_call(sent.calldata)
    if call is None or sent.to is None:
        return Unrecorded(sent, price_wei)
    rows = RelayTransaction.objects.filter(chain_id=get_chain().id, key_manager_address=sent.to)
    profile = get_chain_client().read_key_manager(key_manager=sent.to).target
    user_id = User.objects.filter(profile_address=profile).values_list("pk", flat=True).first()
    same = rows.filter(relay_nonce=call[1]).values_list("pk", "credit_wei").first()
    same_id, credit_wei = same or (None, price_wei)
    return Unrecorded(sent, credit_wei, profile, user_id, same_id)
