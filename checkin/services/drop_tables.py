"""
Drop tables: one member of staff drafts a table, only its author can change the draft, and approval publishes it.

A table is published exactly as shown by its request, within the operator's limits, and never changes afterwards.
"""

import hashlib
import json
from collections.abc import Collection, Iterator

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now

from checkin import queries
from checkin.draw import Item, odds_of, streak_levels, unlocked
from checkin.errors import DropTableChanged, DropTableInvalid, DropTableNotADraft
from checkin.models import DropItem, DropTable, DropType
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import Done, Kind, RequestOutdated
from gateway.staff.models import ApprovalRequest
from rewards.models import Badge
from users.models import User


def create_draft(*, badge: Badge, author: User, like: DropTable | None = None) -> DropTable:
    """Return a new draft for the badge, with the items of `like` or none."""
    with transaction.atomic():
        # The badge's lock serialises the numbering of its versions.
        Badge.objects.select_for_update(no_key=True).get(pk=badge.pk)
        last = DropTable.objects.filter(badge=badge).aggregate(last=Max("version"))["last"] or 0
        draft = DropTable.objects.create(badge=badge, version=last + 1, author_id=author.pk)
        if like is not None:
            _copy_items(like, draft)
    return draft


def _copy_items(source: DropTable, draft: DropTable) -> None:
    copies = list(source.items.order_by("id"))
    for row in copies:
        row.pk, row.table = None, draft
    DropItem.objects.bulk_create(copies)


def lock_draft(*, table_id: int) -> None:
    """
    Lock a draft against publishing until the caller's transaction ends.

    Raises:
        DropTableNotADraft: the table was published or deleted.
    """
    draft = DropTable.objects.select_for_update(no_key=True).filter(pk=table_id, published_at=None)
    if not draft.values_list("pk", flat=True):
        raise DropTableNotADraft(
            "It was published or deleted in the meantime. Copy it as a new draft to change it."
        )


def request_publication(
    *, table_id: int, actor: User, reviewed: Collection[str], reason: str, key: str
) -> ApprovalRequest:
    """
    Request publishing the draft for its badge.

    `reviewed` are the fingerprints of the items that `actor` has reviewed. A repeated key returns the first request.

    Raises:
        PermissionDenied, ReasonRequired, RequestConflict: see `approvals.ask`.
        DropTableNotADraft: the table is already published.
        DropTableChanged: the items are not those that `actor` has reviewed.
        DropTableInvalid: the table breaks rules, which the detail lists.
    """
    table = DropTable.objects.select_related("badge").get(pk=table_id)
    fingerprint = fingerprint_of(table)
    if fingerprint not in reviewed:
        raise DropTableChanged("Its items were changed in the meantime. Review the odds again, then publish.")
    return approvals.ask(
        kind=PUBLISH,
        actor=actor,
        reason=reason,
        key=key,
        row=table,
        payload={"fingerprint": fingerprint},
        changes=_changes(table),
    )


def _changes(table: DropTable) -> dict[str, tuple[str, str]]:
    """Return by type the expected value of a draw from the badge's current table, and from the draft."""
    in_force = queries.tables_in_force([table.badge] if table.badge else []).values()
    before, after = (_expected(tables) for tables in (list(in_force), [table]))
    return {name: (before.get(name, ""), after.get(name, "")) for name in before | after}


def _expected(tables: list[DropTable]) -> dict[str, str]:
    items = queries.items_of(tables)
    return {
        f"{one.drop_type} of a draw"
        + (
            f", {streak} days in a row" if streak else ""
        ): f"{float(one.expected):.6g}, in {float(one.probability):.2%}"
        for streak in streak_levels(items)
        for one in odds_of(unlocked(items, streak=streak))
    }


def _check(approval: ApprovalRequest) -> None:
    table = DropTable.objects.select_related("badge").get(pk=approval.object_id)
    if table.published_at is not None:
        raise DropTableNotADraft("Copy it as a new draft to change what drops.")
    faults = list(faults_of(table))
    if faults:
        raise DropTableInvalid(" ".join(faults))


def _publish(approval: ApprovalRequest) -> Done:
    # Writers of items hold this lock in share mode, so the items read below are complete.
    table = (
        DropTable.objects.select_for_update(of=("self",)).select_related("badge").get(pk=approval.object_id)
    )
    if fingerprint_of(table) != approval.payload["fingerprint"]:
        raise RequestOutdated("Its items were changed in the meantime. Reject the request and request again.")
    _check(approval)
    DropTable.objects.filter(pk=table.pk).update(published_at=Now(), published_by_id=approval.requested_by_id)
    table.refresh_from_db()
    return Done(f"{table} is in force now.", table)


PUBLISH = approval_kinds.register(
    Kind(
        name="publish_drop_table",
        title="Publish a drop table",
        asks="checkin.publish_droptable",
        decides="checkin.decide_droptable",
        carry_out=_publish,
        check=_check,
    )
)


def fingerprint_of(table: DropTable) -> str:
    """Return the fingerprint of the table's saved items: a SHA-256 in hex."""
    rows = table.items.order_by("id").values_list(
        "drop_type", "weight", "value_min", "value_max", "minutes", "streak_days"
    )
    content = [table.pk, *([str(part) for part in row] for row in rows)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def faults_of(table: DropTable) -> Iterator[str]:
    """Yield a sentence for each rule that the table breaks; the database checks weights and ranges."""
    items = queries.items_of([table])
    levels = [unlocked(items, streak=streak) for streak in streak_levels(items)]
    experience = [_experience_of(level) for level in levels]
    if table.badge is None:
        yield "It has no badge."
        return
    if not experience[0]:
        yield "It needs an item of experience without a streak, for users without a payment or earning."
        return
    # The operator's limit and not that of today's badges, which may change while the table is in force.
    attempts = settings.CHECKIN_MAX_DAILY_ATTEMPTS
    # Users who can win only experience win it more often than the complete table shows.
    yield from _excess(experience, DropType.EXPERIENCE, attempts, settings.CHECKIN_MAX_DAILY_EXPERIENCE)
    yield from _excess(levels, DropType.CREDITS, attempts, settings.CHECKIN_MAX_DAILY_CREDITS)


def _experience_of(items: list[Item]) -> list[Item]:
    return [item for item in items if item.drop_type == DropType.EXPERIENCE]


def _excess(levels: list[list[Item]], drop_type: DropType, attempts: int, cap: int) -> Iterator[str]:
    """Yield a sentence if the streak that gives most of this type gives more than the cap."""
    expected = (
        max(
            one.over(attempts).expected
            for items in levels
            for one in odds_of(items)
            if one.drop_type == drop_type
        )
        if any(item.drop_type == drop_type for items in levels for item in items)
        else 0
    )
    if expected > cap:
        yield (
            f"{drop_type.label} gives {float(expected):.2f} a day on average in {attempts} attempts; "
            f"the maximum is {cap}."
        )
