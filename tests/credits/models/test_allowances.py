"""An allowance's times are in order."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from credits.models import Allowance
from tests.factories import make

_NOW = timezone.now()
_DAY = timedelta(days=1)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("credits_paid", "days", "constraint"),
    [
        (-1, (0, 1, 1), "credits_allowance_credits_not_negative"),
        (1, (1, 0, 1), "credits_allowance_times_in_order"),
        (1, (0, 2, 1), "credits_allowance_times_in_order"),
    ],
)
def test_an_allowance_that_makes_no_sense_is_refused(
    credits_paid: int, days: tuple[int, int, int], constraint: str
) -> None:
    start, end, reset = (_NOW + day * _DAY for day in days)
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        make(Allowance, credits=credits_paid, starts_at=start, ends_at=end, resets_at=reset)
    assert Allowance.objects.count() == 0
