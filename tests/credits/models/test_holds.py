"""A hold's columns tell one story."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from credits.models import CreditEntry, CreditHold, HoldStatus
from credits.services import entries
from tests.credits.holding import place_hold
from tests.credits.rows import everything
from users.models import User

_NOW = timezone.now()


@pytest.mark.parametrize(
    "columns",
    [
        {"status": HoldStatus.HELD, "closed_at": _NOW},
        {"status": HoldStatus.HELD, "captured_amount": 1},
        {"status": HoldStatus.RELEASED},
        {"status": HoldStatus.RELEASED, "closed_at": _NOW, "captured_amount": 1},
        {"status": HoldStatus.CAPTURED, "closed_at": _NOW, "captured_amount": 1},
        {"status": HoldStatus.CAPTURED, "closed_at": _NOW, "entry": True},
        {"status": HoldStatus.CAPTURED, "captured_amount": 1, "entry": True},
        {"status": HoldStatus.CAPTURED, "closed_at": _NOW, "captured_amount": 0, "entry": True},
        {"status": HoldStatus.RELEASED, "closed_at": _NOW, "entry": True},
        {"status": "LOST"},
    ],
)
def test_a_status_that_contradicts_the_columns_is_refused(
    user: User, key: str, columns: dict[str, Any]
) -> None:
    held = place_hold(user=user, credits=5, key=key).hold
    before = everything()
    entry = CreditEntry.objects.get(account__user=user) if "entry" in columns else None
    with pytest.raises(IntegrityError, match="credits_hold_status_fits_columns"), transaction.atomic():
        CreditHold.objects.filter(pk=held.pk).update(**{**columns, "entry": entry})
    assert everything() == before


def test_a_hold_of_less_than_nothing_is_refused(user: User, key: str) -> None:
    account = entries.open_account(user_id=user.pk)
    with pytest.raises(IntegrityError, match="credits_hold_amount_not_negative"), transaction.atomic():
        CreditHold.objects.create(account=account, key=key, amount=-1)
    assert CreditHold.objects.count() == 0
