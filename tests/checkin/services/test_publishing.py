"""A drop table is published by a second person, within the caps, for good."""

import random
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.db.models import F

from checkin.errors import DropTableChanged, DropTableInvalid, DropTableNotADraft, SecondPersonNeeded
from checkin.models import DropItem, DropTable
from checkin.queries import tables_in_force
from checkin.services import drop_tables
from checkin.services.drop_tables import fingerprint_of, publish
from rewards.models import Badge, BadgeTrack
from tests.checkin.items import item
from tests.checkin.rows import draft_table, everything, lowest, put_in_force, row_of
from tests.factories import UserFactory
from tests.threads import at_once, waits_for_this_transaction
from users.models import User

pytestmark = pytest.mark.django_db


def staff() -> User:
    """Return a member of staff."""
    return UserFactory.create(profile_address=None, is_staff=True)


def approve(draft: DropTable, actor: User) -> DropTable:
    """Publish a draft as it is now."""
    return publish(table_id=draft.pk, actor=actor, reviewed=[fingerprint_of(draft)])


def modest() -> list[Any]:
    """Return items that no cap minds."""
    return [
        item("EXPERIENCE", least=Decimal(1), most=Decimal(random.randint(2, 9))),
        item("BONUS_CREDITS_BACK"),
    ]


def test_a_second_person_puts_a_draft_in_force() -> None:
    author, publisher, badge = staff(), staff(), lowest(BadgeTrack.PERMANENT)
    draft = draft_table(badge, modest(), author=author)
    assert draft not in tables_in_force([badge]).values()

    table = approve(draft, publisher)

    assert (table.pk, table.published_by, table.author) == (draft.pk, publisher, author)
    assert table.published_at is not None
    assert tables_in_force([badge]) == {badge.track: draft}


def test_the_author_cannot_publish() -> None:
    author = staff()
    draft = draft_table(lowest(BadgeTrack.PERMANENT), modest(), author=author)
    before = everything()
    with pytest.raises(SecondPersonNeeded):
        approve(draft, author)
    assert everything() == before


def test_a_draft_of_nobody_is_published_by_nobody() -> None:
    draft = draft_table(lowest(BadgeTrack.PERMANENT), modest())
    with pytest.raises(SecondPersonNeeded):
        approve(draft, staff())


def test_the_database_knows_the_second_person_too() -> None:
    author = staff()
    draft = draft_table(lowest(BadgeTrack.PERMANENT), modest(), author=author)
    for change in ({"published_by": author}, {"published_by": staff(), "published_at": None}):
        with pytest.raises(IntegrityError), transaction.atomic():
            DropTable.objects.filter(pk=draft.pk).update(**{"published_at": F("created_at"), **change})


def test_a_published_table_is_not_published_again() -> None:
    table = put_in_force(lowest(BadgeTrack.PERMANENT), modest())
    before = everything()
    with pytest.raises(DropTableNotADraft):
        approve(table, staff())
    assert everything() == before


def _faulty(name: str, settings: Any) -> list[Any]:
    settings.CHECKIN_MAX_DAILY_CREDITS = settings.CHECKIN_MAX_DAILY_EXPERIENCE = 50
    settings.CHECKIN_MAX_DAILY_ATTEMPTS = 3
    # The badges may be given more attempts when the table stands.
    Badge.objects.update(bonus_daily_check_in_attempts=0)
    experience = item("EXPERIENCE", weight=50, least=Decimal(1), most=Decimal(1))
    return {
        "no item": [],
        "no experience": [item("CREDITS", least=Decimal(1), most=Decimal(1))],
        # 3 × 1/2 × 33.5 is 50.25 a day
        "too many credits": [experience, item("CREDITS", weight=50, least=Decimal(33), most=Decimal(34))],
        # 3 × 17 is 51 a day, for those who win experience alone
        "too much experience": [
            item("EXPERIENCE", weight=1, least=Decimal(17), most=Decimal(17)),
            item("BONUS_CREDITS_BACK", weight=99),
        ],
    }[name]


@pytest.mark.parametrize("name", ["no item", "no experience", "too many credits", "too much experience"])
def test_a_table_that_breaks_a_rule_is_refused(name: str, settings: Any) -> None:
    draft = draft_table(lowest(BadgeTrack.PERMANENT), _faulty(name, settings), author=staff())
    before = everything()
    with pytest.raises(DropTableInvalid):
        approve(draft, staff())
    assert everything() == before


def test_a_table_at_the_caps_is_accepted(settings: Any) -> None:
    _faulty("no item", settings)
    draft = draft_table(
        lowest(BadgeTrack.PERMANENT),
        [
            item("EXPERIENCE", weight=50, least=Decimal(16), most=Decimal(16)),
            item("CREDITS", weight=50, least=Decimal(33), most=Decimal(33)),
        ],
        author=staff(),
    )
    assert approve(draft, staff()).published_at


def test_the_first_tables_obey_the_rules(db: None) -> None:
    for table in DropTable.objects.select_related("badge"):
        assert table.badge
        draft = drop_tables.create_draft(badge=table.badge, author=staff(), like=table)
        assert approve(draft, staff()).version == 2


def test_a_published_table_and_its_items_never_change() -> None:
    table = put_in_force(lowest(BadgeTrack.PERMANENT), modest())
    other = draft_table(lowest(BadgeTrack.PERMANENT), modest())
    mine, items = DropTable.objects.filter(pk=table.pk), DropItem.objects.filter(table=table)
    before = everything()
    for change in (
        lambda: mine.update(version=F("version") + 1),
        lambda: mine.update(published_at=None),
        lambda: mine.update(badge=None, version=99),
        lambda: mine.update(badge=lowest(BadgeTrack.SUBSCRIBER)),
        lambda: items.update(weight=F("weight") + 1),
        lambda: items.update(table=other),
        lambda: DropItem.objects.filter(table=other).update(table=table),
        lambda: row_of(table, item("CREDITS")).save(),
    ):
        with pytest.raises((ProgrammingError, IntegrityError), match=r"never change|Cannot update"):
            _in_a_savepoint(change)
    for sql in (
        "DELETE FROM checkin_dropitem WHERE table_id = %s",
        "DELETE FROM checkin_droptable WHERE id = %s",
    ):
        with pytest.raises((ProgrammingError, IntegrityError), match=r"never change|Cannot delete"):
            _in_a_savepoint(partial(_execute, sql, table.pk))
    assert everything() == before


def test_a_badge_that_is_gone_leaves_its_tables_behind() -> None:
    table = put_in_force(lowest(BadgeTrack.PERMANENT), modest())
    Badge.objects.filter(track=BadgeTrack.PERMANENT).delete()
    table.refresh_from_db()
    assert (table.badge, table.items.count()) == (None, 2)
    assert str(table).endswith(f"no badge, version {table.version}")


def test_a_draft_may_be_changed_and_thrown_away() -> None:
    draft = draft_table(lowest(BadgeTrack.PERMANENT), modest(), author=staff())
    draft.items.update(weight=7)
    assert set(draft.items.values_list("weight", flat=True)) == {7}
    draft.delete()
    assert not DropItem.objects.filter(table_id=draft.pk).exists()


def test_a_draft_that_was_not_reviewed_as_it_is_now_is_not_published() -> None:
    draft, other = (draft_table(lowest(BadgeTrack.PERMANENT), modest(), author=staff()) for _ in range(2))
    reviewed = [fingerprint_of(draft)]
    draft.items.update(weight=F("weight") + 1)
    before = everything()
    for seen in (reviewed, [fingerprint_of(other)], [], [""]):
        with pytest.raises(DropTableChanged):
            publish(table_id=draft.pk, actor=staff(), reviewed=seen)
    assert everything() == before
    both = [fingerprint_of(draft), fingerprint_of(other)]
    assert publish(table_id=draft.pk, actor=staff(), reviewed=both).published_at


def test_a_fingerprint_tells_apart_whatever_a_draw_could() -> None:
    author = staff()
    draft = draft_table(lowest(BadgeTrack.PERMANENT), modest(), author=author)
    same = [fingerprint_of(draft), fingerprint_of(DropTable.objects.get(pk=draft.pk))]
    seen = {
        same[0],
        fingerprint_of(
            drop_tables.create_draft(badge=lowest(BadgeTrack.PERMANENT), author=author, like=draft)
        ),
    }
    first, second = draft.items.order_by("id")
    for change in (
        lambda: draft.items.filter(pk=first.pk).update(weight=F("weight") + 1),
        lambda: draft.items.filter(pk=first.pk).update(
            value_min=F("value_min") + 1, value_max=F("value_max") + 1
        ),
        lambda: draft.items.filter(pk=first.pk).update(value_max=F("value_max") + 1),
        lambda: draft.items.filter(pk=first.pk).update(drop_type="CREDITS"),
        lambda: draft.items.filter(pk=second.pk).update(value_max=F("value_max") + Decimal("0.0001")),
        lambda: draft.items.filter(pk=second.pk).update(minutes=F("minutes") + 1),
        lambda: draft.items.filter(pk=first.pk).update(id=second.pk + 10_000),
        lambda: row_of(draft, item("CREDITS")).save(),
        lambda: draft.items.filter(pk=second.pk).delete(),
    ):
        change()
        seen.add(fingerprint_of(draft))
    assert (len(set(same)), len(seen)) == (1, 11)


@pytest.mark.django_db(transaction=True)
def test_an_item_that_is_being_written_is_seen_before_publishing() -> None:
    draft = draft_table(lowest(BadgeTrack.PERMANENT), modest(), author=staff())
    call = partial(publish, table_id=draft.pk, actor=staff(), reviewed=[fingerprint_of(draft)])
    with waits_for_this_transaction(call) as published:
        row_of(draft, item("CREDITS", weight=10_000, least=Decimal(99), most=Decimal(99))).save()

    assert isinstance(published.result(), DropTableChanged)
    draft.refresh_from_db()
    assert draft.published_at is None


@pytest.mark.django_db(transaction=True)
def test_a_table_is_published_once_however_many_approve() -> None:
    draft = draft_table(lowest(BadgeTrack.PERMANENT), modest(), author=staff())
    answers = at_once([partial(approve, draft, staff()) for _ in range(6)])
    assert sorted(type(answer).__name__ for answer in answers) == ["DropTable"] + ["DropTableNotADraft"] * 5


@pytest.mark.django_db(transaction=True)
def test_drafts_begun_at_once_have_versions_of_their_own() -> None:
    badge, author = lowest(BadgeTrack.SUBSCRIBER), staff()
    answers = at_once([partial(drop_tables.create_draft, badge=badge, author=author)] * 6)
    assert sorted(draft.version for draft in answers if isinstance(draft, DropTable)) == [2, 3, 4, 5, 6, 7]


def test_a_copy_has_the_items_and_a_new_author() -> None:
    badge, author = lowest(BadgeTrack.SUBSCRIBER), staff()
    table = DropTable.objects.get(badge=badge)
    copy = drop_tables.create_draft(badge=badge, author=author, like=table)
    names = ("drop_type", "weight", "value_min", "value_max", "minutes")
    of = [list(version.items.order_by("id").values_list(*names)) for version in (table, copy)]
    assert of[0] == of[1]
    assert len(of[0]) > 0
    assert (copy.author, copy.published_at, copy.version) == (author, None, table.version + 1)


def _in_a_savepoint(change: Any) -> None:
    with transaction.atomic():
        change()


def _execute(sql: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
