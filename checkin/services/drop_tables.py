"""
Drop tables: drafted by one member of staff, who alone may change the draft, and published by a second.

What is published is what the second person saw, within the operator's limits, and stays for good.
"""

import hashlib
import json
from collections.abc import Collection, Iterator

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now

from checkin import queries
from checkin.draw import Item, odds_of
from checkin.errors import DropTableChanged, DropTableInvalid, DropTableNotADraft, SecondPersonNeeded
from checkin.models import DropItem, DropTable, DropType
from rewards.models import Badge
from users.models import User


def create_draft(*, badge: Badge, author: User, like: DropTable | None = None) -> DropTable:
    """Return a new draft for the badge, with the items of `like` or none."""
    with transaction.atomic():
        # Versions of a badge are counted under the badge's lock.
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
    Keep a draft from being published until the caller's transaction ends.

    Raises:
        DropTableNotADraft: it was published before, or thrown away.
    """
    draft = DropTable.objects.select_for_update(no_key=True).filter(pk=table_id, published_at=None)
    if not draft.values_list("pk", flat=True):
        raise DropTableNotADraft(
            "It was published or thrown away meanwhile. Copy it as a new draft to change it."
        )


def publish(*, table_id: int, actor: User, reviewed: Collection[str]) -> DropTable:
    """
    Put the draft in force for its badge, from now on and never to be changed. Joins the caller's transaction.

    `reviewed` are the fingerprints of what `actor` has seen.

    Raises:
        DropTableNotADraft: it is published already.
        SecondPersonNeeded: `actor` wrote it.
        DropTableChanged: its items are not the ones that `actor` has seen.
        DropTableInvalid: it breaks a rule; the detail names every one.
    """
    with transaction.atomic():
        # An item that is being written holds this lock in share mode, so what is read below is all there is.
        table = DropTable.objects.select_for_update(of=("self",)).select_related("badge").get(pk=table_id)
        if table.published_at is not None:
            raise DropTableNotADraft("Copy it as a new draft to change what drops.")
        if table.author_id is None or table.author_id == actor.pk:
            raise SecondPersonNeeded("Somebody else than its author publishes a table.")
        if fingerprint_of(table) not in reviewed:
            raise DropTableChanged("Its items were changed meanwhile. Look at the odds again, then publish.")
        faults = list(faults_of(table))
        if faults:
            raise DropTableInvalid(" ".join(faults))
        DropTable.objects.filter(pk=table.pk).update(published_at=Now(), published_by_id=actor.pk)
        table.refresh_from_db()
    return table


def fingerprint_of(table: DropTable) -> str:
    """Return the fingerprint of the table's saved items: a SHA-256 in hex."""
    rows = table.items.order_by("id").values_list("drop_type", "weight", "value_min", "value_max", "minutes")
    content = [table.pk, *([str(part) for part in row] for row in rows)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def faults_of(table: DropTable) -> Iterator[str]:
    """Yield a sentence for each rule that the table breaks; the database checks weights and ranges."""
    items = queries.items_of([table])
    experience = [item for item in items if item.drop_type == DropType.EXPERIENCE]
    if table.badge is None:
        yield "It belongs to no badge."
        return
    if not experience:
        yield "It needs an item of experience, for users who have not paid or earned yet."
        return
    # Not by the badges as they are: those may be changed later, and the table stays.
    attempts = settings.CHECKIN_MAX_DAILY_ATTEMPTS
    # Users who can win only experience win it more often than the whole table says.
    yield from _excess(experience, DropType.EXPERIENCE, attempts, settings.CHECKIN_MAX_DAILY_EXPERIENCE)
    yield from _excess(items, DropType.CREDITS, attempts, settings.CHECKIN_MAX_DAILY_CREDITS)


def _excess(items: list[Item], drop_type: DropType, attempts: int, cap: int) -> Iterator[str]:
    for of_one in odds_of(items):
        odds = of_one.over(attempts)
        if odds.drop_type == drop_type and odds.expected > cap:
            expected = f"{float(odds.expected):.2f}"
            yield f"{drop_type} is worth {expected} a day in {attempts} attempts; at most {cap} may be given."
