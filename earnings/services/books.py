"""
The reads and writes of deciding postbacks: few statements per batch; a single postback is a batch of one.

`open_book` locks the accounts, then the experience, then the day's ceilings, and reads everything that the decisions
depend on. `services.decisions` decides in memory, in order; `write` stores the result.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import F, Field

from credits.models import EntrySource
from credits.services import entries
from credits.services.entries import Posting
from earnings.models import AdNetwork, Postback, PostbackKind, PostbackState
from earnings.networks import ADAPTERS
from earnings.rules import COUNTED
from earnings.services import caps
from earnings.services.caps import Day, History
from gateway.common import db
from gateway.common.statements import Statements
from rewards.models import ExperienceEntry
from rewards.services import standings
from rewards.services.standings import Standing

# The columns that a decision writes; the others never change.
_DECIDED = (
    "state", "refused_because", "hold_reason", "badge_bonus", "modifier_bonus", "credits", "entry", "available_at",
)  # fmt: skip


class Posted(NamedTuple):
    """The credits and experience given for a postback."""

    credits: int
    experience: int


@dataclass
class Book:
    """The rows around a batch of undecided postbacks of one network and time, and their changes."""

    network: AdNetwork
    received_at: datetime
    # The decided postbacks by original id, in order.
    related: dict[str, list[Postback]]
    histories: dict[int, History]
    standings: dict[int, Standing]
    day: Day | None
    # The posted credits and experience by entry key.
    posted: dict[str, Posted]
    _postings: list[Posting] = field(default_factory=list)
    _changed: dict[int, Postback] = field(default_factory=dict)
    _keys: dict[int, str] = field(default_factory=dict)

    @property
    def source(self) -> EntrySource:
        return ADAPTERS[self.network.slug].kind

    def related_to(self, postback: Postback, *kinds: PostbackKind) -> list[Postback]:
        return [row for row in self.related[postback.original_id] if row.kind in kinds]

    def taken_from(self, credit: Postback) -> tuple[int, Decimal]:
        """Return the total of earlier reversals: in credits, and in the network's own unit."""
        applied = [
            row
            for row in self.related_to(credit, PostbackKind.REVERSAL)
            if row.state == PostbackState.REVERSED
        ]
        return sum(row.credits for row in applied), sum(
            (row.takes_back or Decimal(0) for row in applied), Decimal(0)
        )

    def counts_as_reversed(self, credit: Postback) -> bool:
        """Return whether an earlier reversal of the credit counts for the length of its user's holds."""
        reversals = self.related_to(credit, PostbackKind.REVERSAL)
        return any(row.credits and self.is_counted(row) for row in reversals)

    def is_counted(self, postback: Postback) -> bool:
        return postback.received_at >= self.received_at - COUNTED

    def add(self, postback: Postback) -> None:
        """Store a decision; later postbacks of the batch see it."""
        self.related[postback.original_id].append(postback)
        self.change(postback)

    def change(self, postback: Postback) -> None:
        self._changed[postback.pk] = postback

    def grant(self, credit: Postback, credits: int) -> None:
        """Post a credit's credits and their experience."""
        user_id, key = credit.user_id or 0, entry_key(credit)
        self._post(credit, Posting(user_id, credits, self.source, key))
        gained = self.standings[user_id].gain(base=credits, key=key, cause=self.source)
        self.posted[key] = Posted(credits, gained)

    def reverse(self, reversal: Postback, *, experience: int) -> None:
        """Take back a reversal's credits, and experience."""
        # A prefix and not a suffix, because a network's id could end like our suffix.
        user_id, key = reversal.user_id or 0, f"reversed-{entry_key(reversal)}"
        source = EntrySource.EARNING_REVERSAL
        self._post(reversal, Posting(user_id, -reversal.credits, source, key))
        if experience:
            self.standings[user_id].take_back(amount=experience, key=key, cause=source)

    def _post(self, postback: Postback, posting: Posting) -> None:
        self._postings.append(posting)
        self._keys[postback.pk] = posting.key

    def write(self) -> None:
        """Store all decisions and post their credits."""
        if self.day:
            self.day.write()
        if self._postings:
            ids = entries.post_all(self._postings)
            for pk, key in self._keys.items():
                self._changed[pk].entry_id = ids[key]
        standings.post(self.standings.values())
        store(self._changed.values())


def entry_key(postback: Postback) -> str:
    return f"earning:{postback.network.slug}:{postback.external_id}"


def open_book(postbacks: list[Postback]) -> Book:
    """Lock and read everything around these undecided postbacks, which are of one network and time and name users."""
    network, received_at = postbacks[0].network, postbacks[0].received_at
    entries.lock_accounts(user_ids={row.user_id for row in postbacks if row.user_id})
    credited = [row for row in postbacks if row.kind == PostbackKind.CREDIT]
    related = _related(postbacks)
    posted = _posted(postbacks, related)
    # A reversal changes the experience of a credit that was posted.
    moved = {row.user_id for row in postbacks if row.user_id and (posted or row.kind == PostbackKind.CREDIT)}
    return Book(
        network=network,
        received_at=received_at,
        related=related,
        histories=defaultdict(History, caps.histories(credited) if credited else {}),
        standings=standings.lock(user_ids=moved, now=received_at) if moved else {},
        day=caps.lock_day(network, received_at.date()) if credited else None,
        posted=posted,
    )


def _related(postbacks: list[Postback]) -> dict[str, list[Postback]]:
    """Return the decided postbacks of each original id, in order."""
    network = postbacks[0].network
    decided = Postback.objects.filter(
        network=network, original_id__in={row.original_id for row in postbacks}
    ).exclude(pk__in=[row.pk for row in postbacks])
    related: dict[str, list[Postback]] = defaultdict(list)
    for row in decided.defer("raw", "headers").order_by("pk"):
        row.network = network
        related[row.original_id].append(row)
    return related


def _posted(postbacks: list[Postback], related: dict[str, list[Postback]]) -> dict[str, Posted]:
    """Return the credits and experience posted for the credits that these reversals name."""
    originals = {row.original_id for row in postbacks if row.kind == PostbackKind.REVERSAL}
    given = [
        row
        for original in originals
        for row in related[original]
        if row.kind == PostbackKind.CREDIT and row.entry_id
    ]
    if not given:
        return {}
    rows = Postback.objects.filter(pk__in=[row.pk for row in given]).values_list("pk", "entry__amount")
    amounts = dict(rows)
    gained = ExperienceEntry.objects.filter(key__in=[entry_key(row) for row in given])
    experience = dict(gained.values_list("key", F("amount")))
    return {entry_key(row): Posted(amounts[row.pk], experience[entry_key(row)]) for row in given}


def store(rows: Collection[Postback]) -> None:
    """Store the decisions about these postbacks, in one statement."""
    db.all_rows(_Sql.update, {"ids": [row.pk for row in rows], **arrays(rows, _FIELDS)})


def arrays(rows: Collection[Postback], fields: Sequence[Field[Any, Any]]) -> dict[str, list[Any]]:
    """Return the values of these fields in the rows' order, for `unnested`."""
    # Each attribute of `connection` looks up the thread's connection again.
    own = connections[DEFAULT_DB_ALIAS]
    return {
        field.attname: [field.get_db_prep_save(getattr(row, field.attname), own) for row in rows]
        for field in fields
    }


def unnested(fields: Sequence[Field[Any, Any]]) -> str:
    return ", ".join(f"%({field.attname})s::{field.db_type(connection)}[]" for field in fields)


_FIELDS = [column for column in Postback._meta.concrete_fields if column.name in _DECIDED]
_NAMES = [field.attname for field in _FIELDS]


class _Sql(
    Statements,
    file=__file__,
    assignments=", ".join(f"{name} = new.{name}" for name in _NAMES),
    arrays=unnested(_FIELDS),
    names=", ".join(_NAMES),
):
    update: str
