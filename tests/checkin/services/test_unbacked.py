"""Credits of check-ins take from the day's ceiling on unbacked credits."""

import random
from datetime import datetime
from decimal import Decimal
from functools import partial

import pytest

from checkin.errors import CheckInCreditsSpent
from checkin.models import CheckIn
from checkin.services.checkins import execute
from credits.models import UnbackedCeiling
from credits.queries import unbacked_today
from gateway.common.errors import DomainError
from tests.checkin.conftest import earner
from tests.checkin.rows import everything, only
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


def test_beyond_the_ceiling_a_check_in_is_refused_and_uses_no_attempt(proven: User, now: datetime) -> None:
    amount = random.randint(2, 99)
    only("CREDITS", least=Decimal(amount), most=Decimal(amount))
    UnbackedCeiling.objects.create(credits=amount - 1)
    before = everything()

    with pytest.raises(CheckInCreditsSpent) as refusal:
        execute(user=proven, now=now, idempotency_key="one")

    assert (refusal.value.status, refusal.value.code) == (503, "check-in-credits-spent")
    assert (everything(), unbacked_today().check_ins) == (before, 0)
    UnbackedCeiling.objects.create(credits=amount)
    assert execute(user=proven, now=now, idempotency_key="one").attempt == 1
    assert unbacked_today().check_ins == amount


def test_the_ceiling_refuses_no_other_drop(proven: User, now: datetime) -> None:
    only("EXPERIENCE")
    UnbackedCeiling.objects.create(credits=0)
    assert execute(user=proven, now=now).attempt == 1


def test_16_concurrent_check_ins_never_exceed_the_ceiling(transactional_db: None, now: datetime) -> None:
    amount, fitting = random.randint(2, 99), random.randint(3, 12)
    only("CREDITS", least=Decimal(amount), most=Decimal(amount))
    UnbackedCeiling.objects.create(credits=amount * fitting + amount - 1)
    users = [earner() for _ in range(16)]

    results = at_once([partial(execute, user=user, now=now) for user in users])

    assert sum(isinstance(result, CheckIn) for result in results) == fitting
    refused = [result for result in results if isinstance(result, DomainError)]
    assert {type(result) for result in refused} == {CheckInCreditsSpent}
    assert unbacked_today().check_ins == amount * fitting
