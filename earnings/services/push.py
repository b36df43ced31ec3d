"""
Push networks, which report no user in a postback of their own.

Their reports are imported by staff: a file is checked whole before its first row is recorded, and may be imported
again. Or notifications carry our visit links: one per delivered notification, paid once, until it expires.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import cast

from earnings.models import AdNetwork, NetworkUser
from earnings.networks import ADAPTERS
from earnings.networks.base import PostbackEvent
from earnings.networks.push_report import ReportLine, read_report
from earnings.networks.visit_link import VisitLink, sign_visit
from earnings.services import networks
from earnings.services.postbacks import VerifiedEvent, record
from users.models import User

MAX_LINK_LIFETIME = timedelta(days=366)
_USERS_AT_ONCE = 1_000


@dataclass(frozen=True)
class ImportResult:
    """What became of a file: rows that were new, rows that had been imported before; or only its errors by line."""

    new: int
    repeated: int
    errors: list[tuple[int, str]]


def import_report(*, slug: str, text: str, is_dry_run: bool, now: datetime) -> ImportResult:
    """
    Record every row of a report, each in a transaction of its own; none where any line is faulty.

    A row that was imported before changes nothing, so a file that broke off is simply
    imported again. A dry run records nothing and counts all rows as new.

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
    errors = [(line.number, error) for line in lines if (error := _error(line, users))]
    if errors or is_dry_run:
        return ImportResult(0 if errors else len(lines), 0, errors)
    new = sum(record(_verified(network, line, users, now=now)) for line in lines)
    return ImportResult(new, len(lines) - new, [])


def _error(line: ReportLine, users: dict[str, User]) -> str:
    if line.event is None:
        return line.error
    return "" if line.event.user_ref in users else "no user has this user_reference"


def _verified(
    network: AdNetwork, line: ReportLine, users: dict[str, User], *, now: datetime
) -> VerifiedEvent:
    event = cast("PostbackEvent", line.event)
    return VerifiedEvent(
        network=network, event=event, user=users[event.user_ref], raw=line.text.encode(), received_at=now
    )


def _users_of(network: AdNetwork, events: Sequence[PostbackEvent]) -> dict[str, User]:
    references = sorted({event.user_ref for event in events})
    users: dict[str, User] = {}
    for start in range(0, len(references), _USERS_AT_ONCE):
        part = references[start : start + _USERS_AT_ONCE]
        rows = NetworkUser.objects.select_related("user").filter(network=network, reference__in=part)
        users |= {row.reference: row.user for row in rows}
    return users


def mint_visit_link(*, user: User, campaign: str, amount: Decimal, lifetime: timedelta, now: datetime) -> str:
    """
    Return a link that earns the user `amount` units of the visit link's rate, once, before it expires.

    Raises:
        ValueError: visit links are not enabled or have no secret; `amount` or `lifetime` is not positive, or more
            than a link can carry; or the campaign's name is too long for one.
    """
    if not amount.is_finite() or amount <= 0 or not timedelta() < lifetime <= MAX_LINK_LIFETIME:
        raise ValueError("a visit is worth something for some time, a year at most")
    network = AdNetwork.objects.filter(slug=VisitLink.slug, is_enabled=True).first()
    if network is None or not network.sealed_secrets:
        raise ValueError("visit links are not enabled or have no secret")
    token = sign_visit(
        user_ref=networks.reference_of(user=user, network=network),
        campaign=campaign,
        amount=amount,
        jti=secrets.token_hex(16),
        expires_at=now + lifetime,
        secret=networks.live_secrets(network)[0],
    )
    return networks.address_of(slug=VisitLink.slug, token=token)
