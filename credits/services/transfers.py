"""
Transfer paid credits from a person's account to a sponsor's.

The payment of transferred credits stays known: a transfer moves each lot by its own pair of entries, whose keys name
the lot, and opens a paid lot with the sponsor.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from credits.lots import Lot, Lots, Posting, transfer_keys
from credits.models import CreditAccount, CreditEntry, EntrySource
from credits.services import statements
from gateway.common import db


class Moved(NamedTuple):
    """Transferred credits of a lot: the ids of the entries that opened the lot, took the credits, and added them."""

    lot_entry: int
    out_entry: int
    in_entry: int
    credits: int


def lock(
    *, user_id: int, sponsor_ids: Sequence[int]
) -> tuple[CreditAccount | None, dict[int, CreditAccount]]:
    """
    Lock the account of a person, then those of sponsors, until the transaction ends.

    Returns the person's, None if there is none, and the others by sponsor.
    """
    accounts = CreditAccount.objects.select_for_update(no_key=True)
    own = accounts.filter(user_id=user_id).first()
    rows = accounts.filter(sponsor_id__in=sponsor_ids).order_by("pk")
    return own, {row.sponsor_id: row for row in rows if row.sponsor_id is not None}


class ReadLots:
    """The lots of an account, read before the account is locked, so that only newer entries are read under the lock."""

    def __init__(self, *, user_id: int) -> None:
        self.lots, self._version, self._user_id = Lots(), 0, user_id
        self.read_on()

    def read_on(self) -> Lots:
        """Read the entries since the last call, and return the lots."""
        newer = CreditEntry.objects.filter(account__user=self._user_id, account_version__gt=self._version)
        values = newer.order_by("account_version").values_list(
            "account_version", "id", "key", "source", "amount"
        )
        for row in values.iterator(chunk_size=5_000):
            self.lots.post(Posting(*row[1:]))
            self._version = row[0]
        return self.lots


def move(
    *,
    account: CreditAccount,
    to: CreditAccount,
    free: Iterable[tuple[Lot, int]],
    credits: int,
    transfer_id: int,
) -> list[Moved]:
    """
    Move credits out of the `free` lots, in their order, from each at most the number given with it.

    The caller has locked both accounts, and has read the lots since. Moves nothing if the lots have fewer credits.
    """
    parts, missing = [], credits
    for lot, most in free:
        if part := min(most, missing):
            parts.append((lot.entry_id, part))
            missing -= part
    return [] if missing else _post(account, to, parts, transfer_id)


def _post(
    account: CreditAccount, to: CreditAccount, parts: Sequence[tuple[int, int]], transfer_id: int
) -> list[Moved]:
    keys = [transfer_keys(transfer_id=transfer_id, lot_entry=lot) for lot, _ in parts]
    params = {
        "accounts": [pk for _ in parts for pk in (account.pk, to.pk)],
        "credits": [moved for _, part in parts for moved in (-part, part)],
        "sources": [
            str(source) for _ in parts for source in (EntrySource.TRANSFER_OUT, EntrySource.TRANSFER_IN)
        ],
        "keys": [key for pair in keys for key in pair],
    }
    ids = {key: entry_id for entry_id, key in db.all_rows(statements.POST_TO_ACCOUNTS, params)}
    return [
        Moved(lot, ids[out_key], ids[in_key], part)
        for (lot, part), (out_key, in_key) in zip(parts, keys, strict=True)
    ]
