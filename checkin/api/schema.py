"""Descriptions, error responses and examples of the check-in for the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import OpenApiExample

from checkin import errors
from gateway.common import errors as common
from gateway.common.errors import DomainError
from gateway.common.problems import BODY_ERRORS, problem_responses

_ALWAYS: tuple[type[DomainError], ...] = (
    common.NotAuthenticated,
    common.TooManyRequests,
    common.ServiceUnavailable,
)

DROPS = problem_responses(*_ALWAYS)
_EXECUTE = (
    *_ALWAYS,
    common.InvalidRequest,
    errors.CheckInUnavailable,
    errors.CheckInsPaused,
    errors.CheckInCreditsSpent,
    errors.CheckInsNotReady,
)
EXECUTE = problem_responses(*_EXECUTE)
EXECUTE_BY_POST = problem_responses(*_EXECUTE, *BODY_ERRORS)
FAIRNESS = problem_responses(*_ALWAYS)


DROPS_DESCRIPTION = """
The minimum and maximum value of each type in the permanent badge's drop table and, during a paid period, in the
subscriber badge's. Both are 0 for a type that cannot drop.

Until a payment was collected or an earning posted for the user, only experience can drop, and all other values are 0.
""".strip()

EXECUTE_DESCRIPTION = """
Uses one attempt of the day and returns the drop. Days are UTC dates; each has one attempt plus the badges' extra
attempts. One drop is rolled for every item of the user's drop tables (`possibleResults`), and one of them is chosen by
weight (`result`). It takes effect at once: experience on the permanent track (times the badge's growth rate), credits,
or a bonus for `effectiveTimeInMinutes`.

GET and POST do the same and need no body; a posted body must be JSON and is ignored. A lost response costs the attempt,
unless the request had an `Idempotency-Key`: a repeat with the same key returns the same draw, at any time and even when
no attempt is left.

`checkInFairness` lets anyone recompute the draw.
""".strip()

FAIRNESS_DESCRIPTION = """
The draws of a day are computed from a seed. Its SHA-256 is published here before the day begins (`tomorrow`, `today`),
the seed itself 48 hours after the day began (`revealed`, the last 14 days), together with the user's draws under these
seeds and their drop tables. `docs/examples/python/recompute_draws.py` recomputes them.
""".strip()

_HOW = """
A throw is the first 8 bytes, as a big-endian number, of HMAC-SHA256 with the seed's 32 bytes as key and the message
check-in:<profileAddress>:<day>:<attempt>:<tables>:<throw>:<counter>, tables being <id>v<version> joined by +. For n
outcomes a number of at least 2^64 - 2^64 mod n is thrown again with the next counter, from 0 on; the outcome is the
number mod n. The items of the tables, in order (only those of type EXPERIENCE if experienceOnly, and those of
streakDays at most the draw's streak), are counted from 0. The throw value:<place> gives the number of steps from
valueMin to the item's value, which is at most valueMax; a step is 1 for EXPERIENCE and CREDITS, and 0.0001 for the
other types. The throw choice has as many outcomes as the sum of all weights; it picks the first item for which the
sum of its own and all earlier weights is greater than the outcome. The commitment is the SHA-256 of the seed's bytes.
"""
HOW_TO_RECOMPUTE = " ".join(_HOW.split())

_RESULTS = [
    {"type": "EXPERIENCE", "value": 47},
    {"type": "EXPERIENCE", "value": 181},
    {"type": "CREDITS", "value": 23},
    {"type": "BONUS_PUSH_ADS_CREDITS", "value": 0.0312, "effectiveTimeInMinutes": 60},
    {"type": "BONUS_CREDITS_BACK", "value": 0.0187, "effectiveTimeInMinutes": 60},
]
_PROFILE = "0xBB645D97B0c7D101ca0d73131e521fe89B463BFD"
_SEED = "6e1f0c1a5f4b2c7d8e9fa0b1c2d3e4f5061728394a5b6c7d8e9fa0b1c2d3e4f5"
_COMMITMENT = "0b54fd1be8e3e3b3a2b8ab5f3dc4a1a9d2f0f2f5de1c3c6a7b0f4d9e8c7b6a51"

# Values of the examples.
BONUS_RANGES = {
    "maxBonusCreditsPushAds": 0.1,
    "minBonusCreditsPushAds": 0.02,
    "maxBonusCreditsVideoAd": 0.1,
    "minBonusCreditsVideoAd": 0.02,
    "maxBonusCreditsOfferwall": 0.1,
    "minBonusCreditsOfferwall": 0.02,
    "maxBonusCreditsSurvey": 0.1,
    "minBonusCreditsSurvey": 0.02,
    "maxCreditsBackPercent": 0.05,
    "minCreditsBackPercent": 0.01,
}
_AMOUNT_RANGES = {"maxExperience": 250, "minExperience": 20, "maxCredits": 120, "minCredits": 10}


def _response(name: str, value: dict[str, Any]) -> OpenApiExample:
    return OpenApiExample(name, response_only=True, status_codes=["200"], value=value)


DROPS_EXAMPLES = [_response("A subscriber", {**BONUS_RANGES, **_AMOUNT_RANGES})]
EXECUTE_EXAMPLES = [
    _response("Credits", {"result": _RESULTS[2], "possibleResults": _RESULTS}),
    _response("A bonus", {"result": _RESULTS[4], "possibleResults": _RESULTS}),
]
FAIRNESS_EXAMPLES = [
    _response(
        "One draw to verify",
        {
            "profileAddress": _PROFILE,
            "today": {"day": "2026-11-21", "commitment": _COMMITMENT},
            "tomorrow": {"day": "2026-11-22", "commitment": _COMMITMENT[::-1]},
            "revealed": [{"day": "2026-11-19", "commitment": _COMMITMENT, "seed": _SEED}],
            "draws": [
                {
                    "day": "2026-11-19",
                    "attempt": 1,
                    "tables": [1],
                    "experienceOnly": True,
                    "streak": 4,
                    "result": _RESULTS[0],
                    "possibleResults": _RESULTS[:1],
                }
            ],
            "tables": [
                {
                    "id": 1,
                    "version": 1,
                    "items": [{"type": "EXPERIENCE", "weight": 50, "valueMin": "20", "valueMax": "60"}],
                }
            ],
            "howToRecompute": "A throw is the first 8 bytes, as a big-endian number, of HMAC-SHA256 …",
        },
    )
]
