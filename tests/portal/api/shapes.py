"""The dashboard of the specification as a JSON schema: names, types and casing, and nothing else allowed."""

from typing import Any

NUMBER: dict[str, Any] = {"type": "number"}
TEXT: dict[str, Any] = {"type": "string"}
FLAG: dict[str, Any] = {"type": "boolean"}
ADDRESS: dict[str, Any] = {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"}
TIMESTAMP: dict[str, Any] = {
    "type": "string",
    "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$",
}


def exactly(**members: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with these members and no other."""
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


def each(item: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an array."""
    return {"type": "array", "items": item}


def numbers(names: str) -> dict[str, Any]:
    """Return the schema of an object whose members are all numbers."""
    return exactly(**dict.fromkeys(names.split(), NUMBER))


USER_INFO = exactly(
    credits=NUMBER,
    subscriptionAmount=NUMBER,
    permanentExp=NUMBER,
    subscriptionExp=NUMBER,
    percentToNextPermanentBadge=NUMBER,
    percentToNextSubscriberBadge=NUMBER,
    isSubscriber=FLAG,
    canCheckIn=FLAG,
)
BADGE = numbers(
    "exp_lower_bound exp_upper_bound exp_growth_rate bonus_creds_push_ads bonus_creds_video_ads "
    "bonus_creds_offerwall bonus_creds_surveys bonus_daily_check_in_attempts credits_back_percent "
    "acceptable_credit_debt related_check_in_drops"
)
MODIFIER = exactly(
    id=NUMBER,
    related_user=ADDRESS,
    modifier_type=TEXT,
    value=NUMBER,
    expires_at=TIMESTAMP,
    created_at=TIMESTAMP,
)
EARNING = exactly(
    related_user=ADDRESS,
    credit_source=TEXT,
    credits_earned=NUMBER,
    credits_before=NUMBER,
    credits_after=NUMBER,
)
TRANSACTION = exactly(
    transaction_hash=TEXT,
    related_user=ADDRESS,
    expected_cost=NUMBER,
    real_cost=NUMBER,
    credits_before=NUMBER,
    credits_after=NUMBER,
    status=TEXT,
)
DROP_TABLE = numbers(
    "maxBonusCreditsPushAds minBonusCreditsPushAds maxBonusCreditsVideoAd minBonusCreditsVideoAd "
    "maxBonusCreditsOfferwall minBonusCreditsOfferwall maxBonusCreditsSurvey minBonusCreditsSurvey "
    "maxCreditsBackPercent minCreditsBackPercent maxExperience minExperience maxCredits minCredits"
)
DASHBOARD = exactly(
    userInfo=USER_INFO,
    permanentBadge=BADGE,
    subscriberBadge=BADGE,
    modifiers=each(MODIFIER),
    earningHistory=each(EARNING),
    transactionHistory=each(TRANSACTION),
    checkInDropTable=DROP_TABLE,
)
