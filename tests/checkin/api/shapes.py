"""The responses as the wire contract words them: names, types, and nothing else."""

from typing import Any

DROPS, EXECUTE, FAIRNESS = (
    f"/api/user/{name}" for name in ("checkInDrops", "executeCheckIn", "checkInFairness")
)

DROP_TABLE_FIELDS = (
    "maxBonusCreditsPushAds",
    "minBonusCreditsPushAds",
    "maxBonusCreditsVideoAd",
    "minBonusCreditsVideoAd",
    "maxBonusCreditsOfferwall",
    "minBonusCreditsOfferwall",
    "maxBonusCreditsSurvey",
    "minBonusCreditsSurvey",
    "maxCreditsBackPercent",
    "minCreditsBackPercent",
    "maxExperience",
    "minExperience",
    "maxCredits",
    "minCredits",
)
_ABSOLUTE = {"type": "integer", "minimum": 0}
_FRACTION = {"type": "number", "minimum": 0, "maximum": 1}

DROP_TABLE: dict[str, Any] = {
    "type": "object",
    "required": list(DROP_TABLE_FIELDS),
    "additionalProperties": False,
    "properties": {
        name: _ABSOLUTE if name.endswith(("Experience", "Credits")) else _FRACTION
        for name in DROP_TABLE_FIELDS
    },
}

_AMOUNT = {
    "type": "object",
    "required": ["type", "value"],
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["EXPERIENCE", "CREDITS"]},
        "value": {"type": "integer", "minimum": 1},
    },
}
_BONUS = {
    "type": "object",
    "required": ["type", "value", "effectiveTimeInMinutes"],
    "additionalProperties": False,
    "properties": {
        "type": {
            "enum": [
                "BONUS_PUSH_ADS_CREDITS",
                "BONUS_VIDEO_ADS_CREDITS",
                "BONUS_OFFERWALL_CREDITS",
                "BONUS_SURVEYS_CREDITS",
                "BONUS_CREDITS_BACK",
            ]
        },
        "value": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "effectiveTimeInMinutes": {"type": "integer", "minimum": 1},
    },
}
DROP: dict[str, Any] = {"oneOf": [_AMOUNT, _BONUS]}

CHECK_IN_RESULT: dict[str, Any] = {
    "type": "object",
    "required": ["result", "possibleResults"],
    "additionalProperties": False,
    "properties": {"result": DROP, "possibleResults": {"type": "array", "items": DROP, "minItems": 1}},
}
