"""The tables that a new database begins with."""

import itertools

import pytest

from checkin.models import DropItem, DropTable, DropType
from rewards.models import Badge, BadgeTrack

pytestmark = pytest.mark.django_db


def test_every_badge_begins_with_a_published_table() -> None:
    assert Badge.objects.filter(track=BadgeTrack.PERMANENT).count() >= 10
    assert Badge.objects.filter(track=BadgeTrack.SUBSCRIBER).count() >= 5
    badges = set(DropTable.objects.filter(published_at__isnull=False).values_list("badge_id", flat=True))
    assert badges == set(Badge.objects.values_list("pk", flat=True))


def test_every_type_can_drop_from_every_first_table() -> None:
    for table in DropTable.objects.all():
        assert set(table.items.values_list("drop_type", flat=True)) == set(DropType.values)


@pytest.mark.parametrize("track", BadgeTrack.values)
@pytest.mark.parametrize("drop_type", DropType.values)
def test_a_higher_badge_drops_more(track: str, drop_type: str) -> None:
    items = DropItem.objects.filter(table__badge__track=track, drop_type=drop_type)
    ordered = items.order_by("table__badge__exp_lower_bound", "value_min")
    by_badge: dict[int, list[DropItem]] = {}
    for row in ordered:
        by_badge.setdefault(row.table_id, []).append(row)
    ranges = [[(row.value_min, row.value_max) for row in rows] for rows in by_badge.values()]
    assert all(
        low[0] < high[0] and low[1] < high[1]
        for lower, higher in itertools.pairwise(ranges)
        for low, high in zip(lower, higher, strict=True)
    )
