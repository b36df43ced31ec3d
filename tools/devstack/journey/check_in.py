"""The daily check-in: its drop is in range and takes effect once; published seeds match their commitments."""

import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from credit_relay_client import RelayProblem
from devstack.console import echo
from devstack.journey.checks import Mismatch, expect
from devstack.journey.dashboard import Dashboard, exact
from devstack.journey.earnings import Earner
from devstack.wallet import Wallet

Drop = dict[str, Any]
# The fields of the drop table, by type.
_RANGES = {
    "BONUS_PUSH_ADS_CREDITS": "BonusCreditsPushAds",
    "BONUS_VIDEO_ADS_CREDITS": "BonusCreditsVideoAd",
    "BONUS_OFFERWALL_CREDITS": "BonusCreditsOfferwall",
    "BONUS_SURVEYS_CREDITS": "BonusCreditsSurvey",
    "BONUS_CREDITS_BACK": "CreditsBackPercent",
    "EXPERIENCE": "Experience",
    "CREDITS": "Credits",
}


def check_in(earner: Earner) -> None:
    """Check in if an attempt is left, check the effect and a repeat, then the commitments."""
    wallet, before = earner.wallet, earner.dashboard
    table = wallet.check_in_drops()
    expect(
        "the fields of checkInDrops",
        set(table),
        {f"{end}{name}" for name in _RANGES.values() for end in ("min", "max")},
    )
    expect("checkInDropTable of the dashboard", before.shown["checkInDropTable"], table)
    if before.shown["userInfo"]["canCheckIn"]:
        _draw(earner, table)
    else:
        _check_refusal(wallet)
    _check_commitments(wallet)


def _draw(earner: Earner, table: Drop) -> None:
    key = secrets.token_hex(16)
    result = earner.wallet.execute_check_in(key)
    drop, possible = result["result"], result["possibleResults"]
    expect("that the result was possible", drop in possible, True)
    for other in possible:
        name = _RANGES[other["type"]]
        expect(
            f"{other} within its range", table[f"min{name}"] <= other["value"] <= table[f"max{name}"], True
        )
    echo(f"  ✓ checked in: {_text_of(drop)}, of {len(possible)} possible drops")
    _check_effect(earner, drop)
    expect("the drop of the same Idempotency-Key", earner.wallet.execute_check_in(key), result)
    earner.check_unchanged("a repeated check-in")
    echo("    repeated with the same key: the same drop, no second effect")


def _check_effect(earner: Earner, drop: Drop) -> None:
    before = earner.dashboard
    if drop["type"] == "CREDITS":
        earner.check_entry("CHECK_IN", drop["value"], experience=0)
        return
    earner.dashboard = after = Dashboard.of(earner.wallet)
    gained = before.growth(drop["value"]) if drop["type"] == "EXPERIENCE" else 0
    expect("permanentExp after a check-in", after.experience, before.experience + gained)
    expect("the credits after a check-in", after.credits, before.credits)
    new = [row for row in after.shown["modifiers"] if row not in before.shown["modifiers"]]
    expected = (
        []
        if drop["type"] == "EXPERIENCE"
        else [(drop["type"], drop["value"], drop["effectiveTimeInMinutes"])]
    )
    expect(
        "the new modifiers", [(row["modifier_type"], row["value"], _minutes(row)) for row in new], expected
    )


def _check_refusal(wallet: Wallet) -> None:
    try:
        result = wallet.execute_check_in(secrets.token_hex(16))
    except RelayProblem as refusal:
        expect("the refusal", (refusal.status, refusal.code), (409, "check-in-unavailable"))
        echo(f"  ✓ no attempt is left today; the next one comes at {refusal.members['nextCheckInAt']}")
    else:
        raise Mismatch(f"a check-in without an attempt gave {result['result']}")


def _check_commitments(wallet: Wallet) -> None:
    today = datetime.now(UTC).date()
    record = wallet.check_in_fairness()
    days = [record[name]["day"] for name in ("today", "tomorrow")]
    if datetime.now(UTC).date() == today:
        expect("the days of the commitments", days, [str(today), str(today + timedelta(days=1))])
    for day in record["revealed"]:
        commitment = hashlib.sha256(bytes.fromhex(day["seed"])).hexdigest()
        expect(f"the commitment of {day['day']}", day["commitment"], commitment)
    echo(f"  ✓ fairness: the commitment of today's seed is {record['today']['commitment'][:16]}…;")
    echo(f"    {len(record['revealed'])} seeds of earlier days are public and fit their commitments")


def _text_of(drop: Drop) -> str:
    lasts = f" for {drop['effectiveTimeInMinutes']} min" if "effectiveTimeInMinutes" in drop else ""
    return f"{drop['type']} {float(exact(drop['value'])):g}{lasts}"


def _minutes(modifier: Drop) -> float:
    begins, ends = (datetime.fromisoformat(modifier[name]) for name in ("created_at", "expires_at"))
    return (ends - begins) / timedelta(minutes=1)
