"""A push network's daily CSV report, its only source of earnings by user."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from credits.models import EntrySource
from earnings.networks.base import (
    ESSENTIAL,
    Adapter,
    PostbackEvent,
    PostbackRefused,
    RawRequest,
    SignedFields,
)
from earnings.networks.parameters import event_of, information, require_reference

COLUMNS = ("row_id", "user_reference", "amount")
OPTIONAL_COLUMNS = ("payout_usd", "occurred_at")


class PushReport(Adapter):
    """Staff are responsible for the imported file; requests are never accepted."""

    slug: ClassVar = "push-report"
    title: ClassVar = "Push report"
    kind: ClassVar = EntrySource.PUSH_ADS
    covers: ClassVar = ESSENTIAL
    methods: ClassVar[frozenset[str]] = frozenset()
    needs_secret: ClassVar = False
    has_reports: ClassVar = True

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        raise PostbackRefused("reports are imported")

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read a row; a negative amount reverses the row with that id."""
        require_reference(fields.get("user_reference", ""))
        return event_of(
            fields,
            id_="row_id",
            user="user_reference",
            amount="amount",
            payout_usd=information(fields, "payout_usd"),
            occurred_at=_time(fields.get("occurred_at") or ""),
        )


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise PostbackRefused("occurred_at is not an ISO 8601 time") from error
    if time.tzinfo is None:
        raise PostbackRefused("occurred_at has no time zone")
    return time


@dataclass(frozen=True, slots=True)
class ReportLine:
    """A line of the file: its event, or its error."""

    number: int
    text: str
    event: PostbackEvent | None
    error: str = ""


def read_report(adapter: Adapter, text: str) -> Iterator[ReportLine]:
    """
    Yield every line below the header with its event or error; ids must be unique within a file.

    Values are separated by commas, semicolons or tabs. Other columns are ignored.

    Raises:
        PostbackRefused: the header is wrong, or the file is not CSV.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True, delimiter=_delimiter(text))
    names = [name.strip().lower() for name in reader.fieldnames or []]
    known = [name for name in names if name in {*COLUMNS, *OPTIONAL_COLUMNS}]
    if set(COLUMNS) - set(known) or len(set(known)) < len(known):
        raise PostbackRefused(
            f"the header must have {', '.join(COLUMNS)} and may have {', '.join(OPTIONAL_COLUMNS)}, each once"
        )
    # Other columns may have equal names; then one would hide that the other has no value.
    reader.fieldnames = [name if name in known else f"other {place}" for place, name in enumerate(names)]
    seen: set[tuple[str, str]] = set()
    try:
        for row in reader:
            yield _line(adapter, reader.line_num, row, seen)
    except csv.Error as error:
        raise PostbackRefused(f"line {reader.line_num} is not CSV: {error}") from error


def _delimiter(text: str) -> str:
    header = text.partition("\n")[0]
    return max(",;\t", key=header.count)


def _line(adapter: Adapter, number: int, row: dict[str, str], seen: set[tuple[str, str]]) -> ReportLine:
    text = ",".join(str(value) for value in row.values())
    if None in row or None in row.values():
        return ReportLine(number, text, None, "the number of values differs from the header")
    try:
        event = adapter.parse(row)
    except PostbackRefused as refusal:
        return ReportLine(number, text, None, str(refusal))
    if (event.external_id, event.kind) in seen:
        return ReportLine(number, text, None, f"row_id {event.external_id} is duplicate")
    seen.add((event.external_id, event.kind))
    return ReportLine(number, text, event)
