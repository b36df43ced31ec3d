"""What the database itself refuses."""

import secrets
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, ProgrammingError, transaction

from checkin.models import CheckIn
from checkin.services.checkins import execute
from rewards.models import BadgeTrack
from tests.checkin.items import item
from tests.checkin.rows import draft_table, everything, lowest, row_of
from users.models import User

pytestmark = pytest.mark.django_db
_BONUS = "BONUS_CREDITS_BACK"


@pytest.mark.parametrize(
    ("drop_type", "changes", "constraint"),
    [
        ("CREDITS", {"weight": 0}, "weight"),
        ("CREDITS", {"weight": 1_000_001}, "weight"),
        ("CREDITS", {"value_min": 0}, "values_in_order"),
        ("CREDITS", {"value_min": 9, "value_max": 8}, "values_in_order"),
        ("CREDITS", {"value_min": "1.5", "value_max": 8}, "amounts_are_whole"),
        ("EXPERIENCE", {"value_min": 1, "value_max": "8.0001"}, "amounts_are_whole"),
        ("EXPERIENCE", {"minutes": 5}, "amounts_are_whole"),
        (_BONUS, {"minutes": None}, "bonuses_are_bounded"),
        (_BONUS, {"minutes": 0}, "bonuses_are_bounded"),
        (_BONUS, {"minutes": 43_201}, "bonuses_are_bounded"),
        (_BONUS, {"value_max": "1.0001"}, "bonuses_are_bounded"),
        ("LUCK", {}, "type_known|bonuses_are_bounded"),
    ],
)
def test_the_database_refuses_an_invalid_item(
    drop_type: str, changes: dict[str, Any], constraint: str
) -> None:
    table = draft_table(lowest(BadgeTrack.PERMANENT), [])
    row = row_of(table, item(drop_type))
    for name, value in changes.items():
        setattr(row, name, value)
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        row.save()
    assert not table.items.exists()


def test_items_at_the_bounds_are_kept() -> None:
    table = draft_table(lowest(BadgeTrack.PERMANENT), [])
    for drop_type, changes in (
        ("CREDITS", {"weight": 1, "value_min": 1, "value_max": 1}),
        ("EXPERIENCE", {"weight": 1_000_000}),
        (_BONUS, {"minutes": 43_200, "value_min": "0.0001", "value_max": 1}),
        (_BONUS, {"minutes": 1}),
    ):
        row = row_of(table, item(drop_type))
        for name, value in changes.items():
            setattr(row, name, value)
        row.save()
    assert table.items.count() == 4


def test_a_check_in_is_never_changed_nor_deleted(proven: User, now: datetime) -> None:
    execute(user=proven, now=now)
    before = everything()
    rows = CheckIn.objects.all()
    for change in (lambda: rows.update(result_place=0), lambda: rows.update(attempt=7), rows.delete):
        with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            change()
    assert everything() == before


def test_an_attempt_and_a_key_are_taken_once(proven: User, now: datetime) -> None:
    first = execute(user=proven, now=now, idempotency_key=secrets.token_hex(4))
    same_attempt = {"idempotency_key": ""}
    same_key = {"attempt": 2, "day": first.day + timedelta(days=1)}
    for changes, constraint in (
        (same_attempt, "checkin_checkin_attempt"),
        (same_key, "checkin_checkin_key"),
        ({"attempt": 0, "idempotency_key": ""}, "checkin_checkin_attempt_from_1"),
    ):
        copy = CheckIn.objects.get(pk=first.pk)
        copy.pk, copy._state.adding = None, True
        for name, value in changes.items():
            setattr(copy, name, value)
        with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
            copy.save(force_insert=True)
    assert CheckIn.objects.get() == first
