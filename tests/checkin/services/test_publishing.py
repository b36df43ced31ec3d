"""A drop table is published with a second person's approval, within the caps, for good."""

import random
import secrets
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.db.models import F

from checkin.errors import DropTableChanged, DropTableInvalid, DropTableNotADraft
from checkin.models import DropItem, DropTable
from checkin.queries import tables_in_force
from checkin.services import drop_tables
from checkin.services.drop_tables import fingerprint_of, request_publication
from gateway.staff import approvals
from gateway.staff.approval_kinds import RequestDecided, RequestOutdated
from gateway.staff.models import ApprovalRequest
from rewards.models import Badge, BadgeTrack
from tests.checkin.items import item
from tests.checkin.rows import draft_table, everything, lowest, put_in_force, row_of
from tests.factories import UserFactory
from tests.staff import member
from tests.threads import at_once, waits_for_this_transaction
from users.models import User

pytestmark = pytest.mark.django_db


def staff() -> User:
    """Return a member of staff."""
    return UserFactory.create(profile_address=None, is_staff=True)


def ask(draft: DropTable, *, reviewed: list[str] | None = None) -> ApprovalRequest:
    """Ask that a draft is published as it is now."""
    seen = [fingerprint_of(draft)] if reviewed is None else reviewed
    return request_publication(
        table_id=draft.pk, actor=member("finance"), reviewed=seen, reason="x", key=secrets.token_hex(8)
    )


def agree(request: ApprovalRequest) -> ApprovalRequest:
    approvals.approve(request_id=request.pk, actor=member("operations"), reason="x")
    request.refresh_from_db()
    return request


def publish(draft: DropTable) -> DropTable:
    """Ask and agree, and return the table."""
    agree(ask(draft))
    return DropTable.objects.get(pk=draft.pk)


def modest() -> list[Any]:
    """Return items that no cap minds."""
    return [
        item("EXPERIENCE", least=Decimal(1), most=Decimal(random.randint(2, 9))),
        item("BONUS_CREDITS_BACK"),
    ]


def test_a_second_staff_member_publishes_a_draft() -> None:
    badge = lowest(BadgeTrack.PERMANENT)
    draft = draft_table(badge, modest(), author=staff())
    request = ask(draft)
    assert draft not in tables_in_force([badge]).values()
    assert any("CREDITS" in name and before for name, (before, _) in request.changes.items())

    agree(request)

    table = DropTable.objects.get(pk=draft.pk)
    assert (table.published_by, table.author) == (request.requested_by, draft.author)
    assert table.published_at is not None
    assert tables_in_force([badge]) == {badge.track: draft}


def test_a_published_table_is_not_published_again() -> None:
    table = put_in_force(lowest(BadgeTrack.PERMANENT), modest())
    before = everything()
    with pytest.raises(DropTableNotADraft):
        ask(table)
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
        ask(draft)
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
    assert publish(draft).published_at


def test_the_first_tables_obey_the_rules(db: None) -> None:
    for table in DropTable.objects.select_related("badge"):
        assert table.badge
        draft = drop_tables.create_draft(badge=table.badge, author=staff(), like=table)
        assert publish(draft).version == 2


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


def test_a_removed_badge_keeps_its_tables() -> None:
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
    reviewed, request = [fingerprint_of(draft)], ask(draft)
    draft.items.update(weight=F("weight") + 1)
    before = everything()
    for seen in (reviewed, [fingerprint_of(other)], [], [""]):
        with pytest.raises(DropTableChanged):
            ask(draft, reviewed=seen)
    with pytest.raises(RequestOutdated):
        agree(request)
    assert everything() == before
    assert agree(ask(draft, reviewed=[fingerprint_of(draft), fingerprint_of(other)])).status == "done"


def test_a_cap_that_was_lowered_since_holds(settings: Any) -> None:
    request = ask(draft_table(lowest(BadgeTrack.PERMANENT), modest(), author=staff()))
    settings.CHECKIN_MAX_DAILY_EXPERIENCE = 0
    with pytest.raises(DropTableInvalid):
        agree(request)


def test_a_fingerprint_differs_wherever_a_draw_could_differ() -> None:
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
    with waits_for_this_transaction(partial(agree, ask(draft))) as published:
        row_of(draft, item("CREDITS", weight=10_000, least=Decimal(99), most=Decimal(99))).save()

    assert isinstance(published.result(), RequestOutdated)
    draft.refresh_from_db()
    assert draft.published_at is None


@pytest.mark.django_db(transaction=True)
def test_a_table_is_published_once_however_many_approve() -> None:
    draft = draft_table(lowest(BadgeTrack.PERMANENT), modest(), author=staff())
    requests = [ask(draft), ask(draft)]
    results = at_once([partial(agree, one) for one in requests * 3])
    refusals = {ApprovalRequest, RequestDecided, DropTableNotADraft}
    assert {type(result) for result in results} == refusals
    assert sum(isinstance(result, ApprovalRequest) for result in results) == 1


@pytest.mark.django_db(transaction=True)
def test_drafts_begun_concurrently_have_different_versions() -> None:
    badge, author = lowest(BadgeTrack.SUBSCRIBER), staff()
    results = at_once([partial(drop_tables.create_draft, badge=badge, author=author)] * 6)
    assert sorted(draft.version for draft in results if isinstance(draft, DropTable)) == [2, 3, 4, 5, 6, 7]


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
