"""Reports of push networks: a file is checked whole before its first row is posted, and may be imported again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from earnings.models import AdNetwork, NetworkUser
from earnings.networks.base import PostbackEvent
from earnings.networks.push_report import ReportLine, read_report
from earnings.networks.registry import ADAPTERS
from earnings.services.inbox import Arrival
from earnings.services.posting import record
from users.models import User

_USERS_AT_ONCE = 1_000


@dataclass(frozen=True)
class Imported:
    """What became of a file: rows that were new, rows that had been imported before; or only its faults by line."""

    new: int
    repeated: int
    faults: list[tuple[int, str]]


def import_report(*, slug: str, text: str, is_rehearsal: bool, now: datetime) -> Imported:
    """
    Post every row of a report, each in a transaction of its own; none where any line is faulty.

    A row that was imported before changes nothing, so a file that broke off is simply
    imported again. A rehearsal posts nothing and counts all rows as new.

    Raises:
        PostbackRefused: the header is not as it should be, or the file is no CSV.
        ValueError: the network has no reports, or is not enabled.
    """
    adapter = ADAPTERS.get(slug)
    network = AdNetwork.objects.filter(slug=slug, is_enabled=True).first()
    if adapter is None or not adapter.has_reports or network is None:
        raise ValueError(f"{slug} has no reports, or is not enabled")
    lines = list(read_report(adapter, text))
    users = _users_of(network, [line.event for line in lines if line.event])
    faults = [(line.number, fault) for line in lines if (fault := _fault(line, users))]
    if faults or is_rehearsal:
        return Imported(0 if faults else len(lines), 0, faults)
    new = sum(record(_arrival(network, line, users, now=now)) is not None for line in lines)
    return Imported(new, len(lines) - new, [])


def _fault(line: ReportLine, users: dict[str, User]) -> str:
    if line.event is None:
        return line.fault
    return "" if line.event.user_ref in users else "no user has this user_reference"


def _arrival(network: AdNetwork, line: ReportLine, users: dict[str, User], *, now: datetime) -> Arrival:
    event = cast("PostbackEvent", line.event)
    return Arrival(
        network=network, event=event, user=users[event.user_ref], raw=line.text.encode(), received_at=now
    )


def _users_of(network: AdNetwork, events: Sequence[PostbackEvent]) -> dict[str, User]:
    references = sorted({event.user_ref for event in events})
    found: dict[str, User] = {}
    for start in range(0, len(references), _USERS_AT_ONCE):
        part = references[start : start + _USERS_AT_ONCE]
        rows = NetworkUser.objects.select_related("user").filter(network=network, reference__in=part)
        found |= {row.reference: row.user for row in rows}
    return found
