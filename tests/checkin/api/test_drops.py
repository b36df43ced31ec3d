"""GET /api/user/checkInDrops on the wire."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from jsonschema import validate

from credits.services import entries
from rewards.models import BadgeTrack
from tests.checkin.api.shapes import DROP_TABLE, DROP_TABLE_FIELDS, DROPS
from tests.checkin.items import item
from tests.checkin.rows import everything, lowest, put_in_force, subscribe, wear_the_top_badges
from tests.relay.api.conftest import Wallet, wallet_of
from tests.relay.api.test_execute import assert_problem
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", [DROPS, DROPS + "/"])
@pytest.mark.parametrize("kind", ["newcomer", "proven", "subscriber", "lapsed", "top badge"])
def test_every_user_gets_every_field_of_the_contract(
    user: User, proven: User, now: datetime, path: str, kind: str
) -> None:
    who = user if kind == "newcomer" else proven
    if kind in {"subscriber", "top badge"}:
        subscribe(who, timezone.now())
    if kind == "lapsed":
        subscribe(who, timezone.now() - timedelta(days=90))
    if kind == "top badge":
        wear_the_top_badges(who)

    response = wallet_of(who).send("get", path)

    assert (response.status, response.headers["Content-Type"]) == (200, "application/json")
    assert response.headers["Cache-Control"] == "no-store"
    validate(response.body, DROP_TABLE)


def test_the_numbers_are_those_of_the_items(wallet: Wallet) -> None:
    names = {
        "BONUS_PUSH_ADS_CREDITS": ("BonusCreditsPushAds", "0.0312", "0.4444"),
        "BONUS_VIDEO_ADS_CREDITS": ("BonusCreditsVideoAd", "0.1", "0.2"),
        "BONUS_OFFERWALL_CREDITS": ("BonusCreditsOfferwall", "0.07", "0.0701"),
        "BONUS_SURVEYS_CREDITS": ("BonusCreditsSurvey", "0.5", "1"),
        "BONUS_CREDITS_BACK": ("CreditsBackPercent", "0.0001", "0.0003"),
        "EXPERIENCE": ("Experience", "3", "88"),
        "CREDITS": ("Credits", "1", "7"),
    }
    items = [item(name, least=Decimal(least), most=Decimal(most)) for name, (_, least, most) in names.items()]
    put_in_force(lowest(BadgeTrack.PERMANENT), items)
    expected: dict[str, float] = {}
    for field, least, most in names.values():
        expected |= {f"min{field}": float(least), f"max{field}": float(most)}

    assert wallet.send("get", DROPS).body == expected


def test_absent_types_are_zero(wallet: Wallet) -> None:
    put_in_force(lowest(BadgeTrack.PERMANENT), [item("EXPERIENCE", least=Decimal(4), most=Decimal(6))])
    shown = wallet.send("get", DROPS).body
    assert shown == {**dict.fromkeys(DROP_TABLE_FIELDS, 0), "minExperience": 4, "maxExperience": 6}


def test_an_earning_opens_the_other_drops(user: User) -> None:
    wallet = wallet_of(user)
    before = wallet.send("get", DROPS).body
    assert {name for name, value in before.items() if value} == {"minExperience", "maxExperience"}

    entries.grant(user=user, credits=1, source="OFFERWALL", key="first earning")

    assert all(wallet.send("get", DROPS).body.values())


def test_reading_the_drops_changes_nothing(wallet: Wallet) -> None:
    before = everything()
    wallet.send("get", DROPS)
    assert everything() == before


def test_a_request_without_a_token_is_refused(anonymous: Wallet) -> None:
    assert_problem(anonymous.send("get", DROPS), 401, "not-authenticated")


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_other_methods_are_refused(wallet: Wallet, method: str) -> None:
    assert_problem(wallet.send(method, DROPS), 405, "method-not-allowed")
