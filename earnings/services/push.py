"""
Push networks, which send no postbacks about users.

Either staff import their reports: a file is validated as a whole before its first row is recorded, and a second import
of it changes nothing. Or notifications contain our visit links, one per delivered notification; each is credited once,
until it expires.

Importing a file or minting a link requests its credits: above the limits of one person, a second person decides. A
request contains the file's digest, so that the imported file is the approved one.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import cast

from earnings.models import AdNetwork, NetworkUser, Postback
from earnings.networks import ADAPTERS
from earnings.networks.base import PostbackEvent, PostbackRefused
from earnings.networks.push_report import ReportLine, read_report
from earnings.networks.visit_link import VisitLink, sign_visit
from earnings.services import networks
from earnings.services.postbacks import VerifiedEvent, payload_hash, record_all
from gateway.common import clock
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import CREDITS, Done, Kind
from gateway.staff.models import ApprovalRequest
from users.models import User

MAX_LINK_LIFETIME = timedelta(days=366)
_USERS_AT_ONCE = _COMPARED_AT_ONCE = 1_000
# The accounts of a batch's users are locked until it is stored, a fraction of a second.
ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class ImportResult:
    """
    The result of a file: new rows and rows already imported, or only its errors by line.

    `changed` are the lines that were imported with other content: the first content counts, and their postbacks are
    marked as conflicting. `unnamed` are the lines whose reference no user has: staff can give them to a person.
    `approval` is the file's request; nothing is imported before its approval.
    """

    new: int
    repeated: int
    errors: list[tuple[int, str]]
    approval: ApprovalRequest | None = None
    changed: list[int] = field(default_factory=list)
    unnamed: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Report:
    network: AdNetwork
    lines: list[ReportLine]
    users: dict[str, User]
    errors: list[tuple[int, str]]

    @property
    def unnamed(self) -> list[int]:
        return [line.number for line in self.lines if line.event and line.event.user_ref not in self.users]


def check_report(*, slug: str, text: str) -> ImportResult:
    """
    Validate every row of a report, and compare the rows with earlier imports; record nothing.

    Raises:
        PostbackRefused: the header is wrong, the file is not CSV, or no line names a user.
        ValueError: the network has no reports, or is disabled.
    """
    report = _read(slug, text)
    if report.errors:
        return ImportResult(0, 0, report.errors)
    imported, changed = _compare(report)
    new = len(report.lines) - imported
    return ImportResult(new, imported, [], changed=changed, unnamed=report.unnamed)


def import_report(
    *,
    slug: str,
    text: str,
    actor: User,
    reason: str,
    now: datetime,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ImportResult:
    """
    Request the credits of a report and, once approved, record its rows in batches, each in a transaction of its own.

    No row is recorded if any line is invalid. A row that was already imported changes nothing, so import the same file
    again after an interruption or after its approval. `progress` gets the numbers of recorded rows and of all rows.

    Raises:
        PostbackRefused, ValueError: see `check_report`.
        PermissionDenied, ReasonRequired, AboveCeiling: see `approvals.ask`.
    """
    report = _read(slug, text)
    if report.errors:
        return ImportResult(0, 0, report.errors)
    approval = _request_for(report, text, actor, reason)
    if approval.status != ApprovalRequest.Status.DONE:
        return ImportResult(0, 0, [], approval)
    changed, new, total = _compare(report)[1], 0, len(report.lines)
    for start in range(0, total, ROWS_AT_ONCE):
        batch = report.lines[start : start + ROWS_AT_ONCE]
        new += record_all([_verified(report.network, line, report.users, now=now) for line in batch])
        if (done := start + len(batch)) < total:
            progress(done, total)
    return ImportResult(new, total - new, [], approval, changed, report.unnamed)


def _compare(report: _Report) -> tuple[int, list[int]]:
    """Return how many rows were imported before, and the numbers of lines that now differ from their import."""
    imported, changed = 0, []
    for start in range(0, len(report.lines), _COMPARED_AT_ONCE):
        rows = report.lines[start : start + _COMPARED_AT_ONCE]
        ids = [cast("PostbackEvent", line.event).external_id for line in rows]
        stored = Postback.objects.filter(network=report.network, external_id__in=ids)
        hashes = {
            (id_, kind): digest
            for id_, kind, digest in stored.values_list("external_id", "kind", "payload_hash")
        }
        for line in rows:
            event = cast("PostbackEvent", line.event)
            digest = hashes.get((event.external_id, event.kind))
            imported += digest is not None
            if digest not in {None, payload_hash(event)}:
                changed.append(line.number)
    return imported, changed


def _read(slug: str, text: str) -> _Report:
    adapter = ADAPTERS.get(slug)
    network = AdNetwork.objects.filter(slug=slug, is_enabled=True).first()
    if adapter is None or not adapter.has_reports or network is None:
        raise ValueError(f"{slug} is disabled, or its reports cannot be imported")
    lines = list(read_report(adapter, text))
    users = _users_of(network, [line.event for line in lines if line.event])
    errors = [(line.number, line.error) for line in lines if line.event is None]
    if lines and not errors and not users:
        raise PostbackRefused("no line has a user_reference of this network")
    return _Report(network, lines, users, errors)


def _request_for(report: _Report, text: str, actor: User, reason: str) -> ApprovalRequest:
    """Return the pending or approved request for this file, or create it."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    earlier = ApprovalRequest.objects.filter(kind=IMPORT.name, payload__sha256=digest)
    live = earlier.filter(status=ApprovalRequest.Status.DONE) | earlier.waiting()
    if (approval := live.first()) is not None:
        return approval
    # Excludes credits that staff will assign to a person later, by a separate request.
    worths = [
        _credits(report.network, line.event.amount)
        for line in report.lines
        if line.event and line.event.user_ref in report.users
    ]
    earned = sum(worth for worth in worths if worth > 0)
    return approvals.ask(
        kind=IMPORT,
        actor=actor,
        reason=reason,
        key=f"import:{digest}:{earlier.count()}",
        row=report.network,
        amount=earned,
        payload={"sha256": digest},
        changes={
            "rows": ("", f"{len(worths):,} of {len(report.users):,} users"),
            "rows that name no user": ("", f"{len(report.unnamed):,}"),
            "credits before bonuses": ("", f"{earned:,}, at most {max(worths, default=0):,} in a row"),
            "sha256 of the file": ("", digest),
        },
    )


def _credits(network: AdNetwork, amount: Decimal) -> int:
    return math.ceil(amount * network.rate)


IMPORT = approval_kinds.register(
    Kind(
        name="import_earnings",
        title="Import a report of earnings",
        asks="earnings.change_adnetwork",
        decides="earnings.decide_adnetwork",
        pool=CREDITS,
        carry_out=lambda approval: Done(
            "Import the same file again to post it.", AdNetwork.objects.get(pk=approval.object_id)
        ),
    )
)


def _verified(
    network: AdNetwork, line: ReportLine, users: dict[str, User], *, now: datetime
) -> VerifiedEvent:
    event = cast("PostbackEvent", line.event)
    return VerifiedEvent(
        network=network, event=event, user=users.get(event.user_ref), raw=line.text.encode(), received_at=now
    )


def _users_of(network: AdNetwork, events: Sequence[PostbackEvent]) -> dict[str, User]:
    references = sorted({event.user_ref for event in events})
    users: dict[str, User] = {}
    for start in range(0, len(references), _USERS_AT_ONCE):
        part = references[start : start + _USERS_AT_ONCE]
        rows = NetworkUser.objects.select_related("user").filter(network=network, reference__in=part)
        users |= {row.reference: row.user for row in rows}
    return users


def request_visit_link(
    *, user: User, campaign: str, amount: Decimal, lifetime: timedelta, actor: User, reason: str, key: str
) -> tuple[ApprovalRequest, str]:
    """
    Request a link that earns the user `amount` units of the visit link's rate once, within `lifetime` of its approval.

    Also return the link once the request is approved, the same one for a repeated key; until then it is empty.

    Raises:
        PermissionDenied, ReasonRequired, AboveCeiling, RequestConflict: see `approvals.ask`.
        ValueError: visit links are disabled or have no secret; or `amount`, `lifetime` or the campaign's name does not
            fit into a link.
    """
    network = _of_visits(amount, lifetime)
    # Values that do not fit into a link are refused before the request.
    _visit_link(network, user, campaign, amount, expires_at=clock.now() + lifetime, jti=_jti(2**63))
    worth = _credits(network, amount)
    approval = approvals.ask(
        kind=LINK,
        actor=actor,
        reason=reason,
        key=key,
        row=network,
        person=user,
        amount=worth,
        payload={"campaign": campaign, "amount": f"{amount:f}", "seconds": int(lifetime.total_seconds())},
        changes={campaign[:80]: ("", f"a link for {worth:,} credits before bonuses")},
    )
    if approval.decided_at is None or approval.status != ApprovalRequest.Status.DONE:
        return approval, ""
    link = _visit_link(
        network, user, campaign, amount, expires_at=approval.decided_at + lifetime, jti=_jti(approval.pk)
    )
    return approval, link


LINK = approval_kinds.register(
    Kind(
        name="mint_visit_link",
        title="Mint a visit link",
        asks="earnings.change_adnetwork",
        decides="earnings.decide_adnetwork",
        pool=CREDITS,
        carry_out=lambda approval: Done(
            "Run mint_visit_link again with the same key to print it.",
            AdNetwork.objects.get(pk=approval.object_id),
        ),
    )
)


def _jti(request_id: int) -> str:
    return f"request-{request_id}"


def _of_visits(amount: Decimal, lifetime: timedelta) -> AdNetwork:
    if not amount.is_finite() or amount <= 0 or not timedelta() < lifetime <= MAX_LINK_LIFETIME:
        raise ValueError("amount and lifetime must be positive, the lifetime at most a year")
    network = AdNetwork.objects.filter(slug=VisitLink.slug, is_enabled=True).first()
    if network is None or not network.sealed_secrets:
        raise ValueError("visit links are disabled or have no secret")
    return network


def _visit_link(
    network: AdNetwork, user: User, campaign: str, amount: Decimal, *, expires_at: datetime, jti: str
) -> str:
    token = sign_visit(
        user_ref=networks.reference_of(user=user, network=network),
        campaign=campaign,
        amount=amount,
        jti=jti,
        expires_at=expires_at,
        secret=networks.live_secrets(network)[0],
    )
    return networks.address_of(slug=VisitLink.slug, token=token)
