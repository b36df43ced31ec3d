"""The nightly task of rewards."""

import random
import secrets
from datetime import timedelta
from decimal import Decimal

import pytest
from django.conf import settings
from django.db.models import F

from rewards.models import Modifier, ModifierType
from rewards.services import modifiers
from rewards.tasks import purge
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def test_the_purge_deletes_modifiers_that_ended_90_days_ago_and_beat_runs_it() -> None:
    user, key = UserFactory.create(), secrets.token_hex(8)
    for name in ("old", "new"):
        modifiers.grant(
            user=user,
            modifier_type=ModifierType.BONUS_CREDITS_BACK,
            value=Decimal("0.1"),
            minutes=1,
            key=f"{key}:{name}",
            reason="",
        )
    back = timedelta(days=random.randint(91, 400))
    Modifier.objects.filter(key=f"{key}:old").update(
        created_at=F("created_at") - back, expires_at=F("expires_at") - back
    )
    assert "rewards.purge" in {named["task"] for named in settings.CELERY_BEAT_SCHEDULE.values()}
    assert purge.apply().state == "SUCCESS"
    assert list(Modifier.objects.values_list("key", flat=True)) == [f"{key}:new"]
