"""The check-in's responses, and their values from rows."""

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from checkin.models import CheckIn, DropItem, DropTable, DropType
from checkin.queries import DropRange
from checkin.services.seeds import FairnessRecord

# The name of a type in the drop table, after min or max.
_RANGE_NAMES = {
    DropType.BONUS_PUSH_ADS_CREDITS: "BonusCreditsPushAds",
    DropType.BONUS_VIDEO_ADS_CREDITS: "BonusCreditsVideoAd",
    DropType.BONUS_OFFERWALL_CREDITS: "BonusCreditsOfferwall",
    DropType.BONUS_SURVEYS_CREDITS: "BonusCreditsSurvey",
    DropType.BONUS_CREDITS_BACK: "CreditsBackPercent",
    DropType.EXPERIENCE: "Experience",
    DropType.CREDITS: "Credits",
}


def _fraction() -> serializers.FloatField:
    return serializers.FloatField(help_text="A fraction: 0.05 is 5 %.")


class DropRangesSerializer(serializers.Serializer[Any]):
    """The possible values of each type for the user now; 0 if a type cannot drop."""

    maxBonusCreditsPushAds = _fraction()
    minBonusCreditsPushAds = _fraction()
    maxBonusCreditsVideoAd = _fraction()
    minBonusCreditsVideoAd = _fraction()
    maxBonusCreditsOfferwall = _fraction()
    minBonusCreditsOfferwall = _fraction()
    maxBonusCreditsSurvey = _fraction()
    minBonusCreditsSurvey = _fraction()
    maxCreditsBackPercent = _fraction()
    minCreditsBackPercent = _fraction()
    maxExperience = serializers.IntegerField()
    minExperience = serializers.IntegerField()
    maxCredits = serializers.IntegerField()
    minCredits = serializers.IntegerField()


class DropSerializer(serializers.Serializer[Any]):
    """A drop, awarded or possible."""

    type = serializers.ChoiceField(choices=DropType.choices)
    value = serializers.FloatField(help_text="Whole experience or credits; a fraction for a bonus.")
    effectiveTimeInMinutes = serializers.IntegerField(
        required=False, help_text="How long a bonus lasts; absent for experience and credits."
    )


class CheckInResultSerializer(serializers.Serializer[Any]):
    """The awarded drop, and all drops that were possible."""

    result = DropSerializer()
    possibleResults = DropSerializer(many=True)


class CommitmentSerializer(serializers.Serializer[Any]):
    """A commitment: the SHA-256 of the day's seed in hex."""

    day = serializers.DateField()
    commitment = serializers.CharField()


class RevealedSeedSerializer(CommitmentSerializer):
    """A revealed seed in hex."""

    seed = serializers.CharField()


class ItemSerializer(serializers.Serializer[Any]):
    """An item of a drop table. Values are decimal text, so that they compare exactly."""

    type = serializers.ChoiceField(choices=DropType.choices)
    weight = serializers.IntegerField()
    valueMin = serializers.CharField()
    valueMax = serializers.CharField()
    effectiveTimeInMinutes = serializers.IntegerField(required=False)
    streakDays = serializers.IntegerField(
        required=False, help_text="It drops from this many days in a row with a check-in; absent for always."
    )


class TableSerializer(serializers.Serializer[Any]):
    """A drop table that was used for draws."""

    id = serializers.IntegerField()
    version = serializers.IntegerField()
    items = ItemSerializer(many=True)


class DrawSerializer(CheckInResultSerializer):
    """A check-in of a day whose seed is public."""

    day = serializers.DateField()
    attempt = serializers.IntegerField()
    tables = serializers.ListField(
        child=serializers.IntegerField(), help_text="Ids of the drop tables, in the order of their items."
    )
    experienceOnly = serializers.BooleanField(help_text="Whether only items of type EXPERIENCE were drawn.")
    streak = serializers.IntegerField(
        allow_null=True,
        help_text="Days in a row with a check-in, up to this one; null if no item needed a streak.",
    )


class FairnessSerializer(serializers.Serializer[Any]):
    """The data to recompute the user's draws."""

    profileAddress = serializers.CharField()
    today = CommitmentSerializer()
    tomorrow = CommitmentSerializer()
    revealed = RevealedSeedSerializer(many=True)
    draws = DrawSerializer(many=True)
    tables = TableSerializer(many=True)
    howToRecompute = serializers.CharField()


def drop_ranges(ranges: dict[DropType, DropRange]) -> dict[str, float | int]:
    """Return ranges under the names of the drop table; the dashboard shows them too."""
    named: dict[str, float | int] = {}
    for drop_type, name in _RANGE_NAMES.items():
        named[f"max{name}"] = as_number(ranges[drop_type].most)
        named[f"min{name}"] = as_number(ranges[drop_type].least)
    return named


def check_in_result(check_in: CheckIn) -> dict[str, Any]:
    possible = [_drop(stored) for stored in check_in.possible_results]
    return {"result": possible[check_in.result_place], "possibleResults": possible}


def fairness(record: FairnessRecord, *, profile_address: str, how: str) -> dict[str, Any]:
    return {
        "profileAddress": profile_address,
        "today": {"day": record.today.day, "commitment": record.today.commitment},
        "tomorrow": {"day": record.tomorrow.day, "commitment": record.tomorrow.commitment},
        "revealed": [
            {"day": row.day, "commitment": row.commitment, "seed": row.revealed_seed}
            for row in record.revealed
        ],
        "draws": [_draw(row) for row in record.draws],
        "tables": [_table(row) for row in record.tables],
        "howToRecompute": how,
    }


def as_number(value: Decimal) -> float | int:
    """Return a JSON number; a float represents four decimal places exactly enough."""
    return int(value) if value == value.to_integral_value() else float(value)


def _drop(stored: dict[str, Any]) -> dict[str, Any]:
    drop = {"type": stored["type"], "value": as_number(Decimal(stored["value"]))}
    return drop if stored["minutes"] is None else {**drop, "effectiveTimeInMinutes": stored["minutes"]}


def _draw(row: CheckIn) -> dict[str, Any]:
    tables = [row.permanent_table_id, row.subscriber_table_id]
    return {
        "day": row.day,
        "attempt": row.attempt,
        "tables": [number for number in tables if number is not None],
        "experienceOnly": row.experience_only,
        "streak": row.streak,
        **check_in_result(row),
    }


def _table(row: DropTable) -> dict[str, Any]:
    return {"id": row.pk, "version": row.version, "items": [_item(item) for item in row.items.all()]}


def _item(row: DropItem) -> dict[str, Any]:
    item: dict[str, Any] = {
        "type": row.drop_type,
        "weight": row.weight,
        "valueMin": f"{row.value_min.normalize():f}",
        "valueMax": f"{row.value_max.normalize():f}",
    }
    if row.minutes is not None:
        item["effectiveTimeInMinutes"] = row.minutes
    if row.streak_days:
        item["streakDays"] = row.streak_days
    return item
