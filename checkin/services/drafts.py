"""Drafts of drop tables: begun by one member of staff, who alone may change them."""

from django.db import transaction
from django.db.models import Max

from checkin.errors import DropTableNotADraft
from checkin.models import DropItem, DropTable
from credits.models import Badge
from gateway.common.owner import ProfileOwner


def begin(*, badge: Badge, author: ProfileOwner, like: DropTable | None = None) -> DropTable:
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


def keep(*, table_id: int) -> None:
    """
    Keep a draft from being published until the caller's transaction ends.

    Raises:
        DropTableNotADraft: it was published before, or thrown away.
    """
    held = DropTable.objects.select_for_update(no_key=True).filter(pk=table_id, published_at=None)
    if not held.values_list("pk", flat=True):
        raise DropTableNotADraft(
            "It was published or thrown away meanwhile. Copy it as a new draft to change it."
        )
