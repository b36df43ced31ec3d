"""The daily check-in: what may drop, what dropped, that it took effect, and that nobody chose it."""

import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from devstack.console import say
from devstack.gateway_api import Refused
from devstack.journey.checks import Mismatch, expect
from devstack.journey.earner import Earner
from devstack.journey.standing import Standing, exact
from devstack.wallet import Wallet

Drop = dict[str, Any]
# How the drop table names the range of a type.
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
    """Check in where an attempt is left, see the drop take effect, repeat it, and look at the promises."""
    wallet, before = earner.wallet, earner.standing
    table = wallet.check_in_drops()
    expect(
        "the fields of checkInDrops",
        set(table),
        {f"{end}{it}" for it in _RANGES.values() for end in ("min", "max")},
    )
    expect("checkInDropTable of the dashboard", before.shown["checkInDropTable"], table)
    if before.shown["userInfo"]["canCheckIn"]:
        _draw(earner, table)
    else:
        _be_refused(wallet)
    _look_at_promises(wallet)


def _draw(earner: Earner, table: Drop) -> None:
    key = secrets.token_hex(16)
    found = earner.wallet.execute_check_in(key)
    drop, possible = found["result"], found["possibleResults"]
    expect("that the result was possible", drop in possible, True)
    for other in possible:
        name = _RANGES[other["type"]]
        expect(
            f"{other} within its range", table[f"min{name}"] <= other["value"] <= table[f"max{name}"], True
        )
    say(f"  ✓ checked in: {_told(drop)}, of {len(possible)} possible drops")
    _find_effect(earner, drop)
    expect("the drop of the same Idempotency-Key", earner.wallet.execute_check_in(key), found)
    earner.find_unchanged("a repeated check-in")
    say("    repeated with the same key: the same drop, no second effect")


def _find_effect(earner: Earner, drop: Drop) -> None:
    before = earner.standing
    if drop["type"] == "CREDITS":
        earner.find_posted("CHECK_IN", drop["value"], experience=0)
        return
    earner.standing = after = Standing.of(earner.wallet)
    gained = before.growth(drop["value"]) if drop["type"] == "EXPERIENCE" else 0
    expect("permanentExp after a check-in", after.experience, before.experience + gained)
    expect("the credits after a check-in", after.credits, before.credits)
    known = before.shown["modifiers"]
    new = [it for it in after.shown["modifiers"] if it not in known]
    wanted = (
        []
        if drop["type"] == "EXPERIENCE"
        else [(drop["type"], drop["value"], drop["effectiveTimeInMinutes"])]
    )
    expect("the new modifiers", [(it["modifier_type"], it["value"], _minutes(it)) for it in new], wanted)


def _be_refused(wallet: Wallet) -> None:
    try:
        found = wallet.execute_check_in(secrets.token_hex(16))
    except Refused as refusal:
        expect("the refusal", (refusal.status, refusal.problem["code"]), (409, "check-in-unavailable"))
        say(f"  ✓ no attempt is left today; the next one comes at {refusal.problem['nextCheckInAt']}")
    else:
        raise Mismatch(f"a check-in without an attempt gave {found['result']}")


def _look_at_promises(wallet: Wallet) -> None:
    today = datetime.now(UTC).date()
    record = wallet.check_in_fairness()
    days = [record[name]["day"] for name in ("today", "tomorrow")]
    if datetime.now(UTC).date() == today:
        expect("the days promised", days, [str(today), str(today + timedelta(days=1))])
    for kept in record["revealed"]:
        told = hashlib.sha256(bytes.fromhex(kept["seed"])).hexdigest()
        expect(f"the commitment of {kept['day']}", kept["commitment"], told)
    say(f"  ✓ fairness: today's seed is promised as {record['today']['commitment'][:16]}…;")
    say(f"    {len(record['revealed'])} seeds of earlier days are public and as promised")


def _told(drop: Drop) -> str:
    lasts = f" for {drop['effectiveTimeInMinutes']} min" if "effectiveTimeInMinutes" in drop else ""
    return f"{drop['type']} {float(exact(drop['value'])):g}{lasts}"


def _minutes(modifier: Drop) -> float:
    begins, ends = (datetime.fromisoformat(modifier[name]) for name in ("created_at", "expires_at"))
    return (ends - begins) / timedelta(minutes=1)
