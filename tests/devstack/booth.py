"""The earnings of the stand-in: one user's credits, experience and drops, as little as keeps the contract."""

import csv
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

from devstack.ad_networks.signing import KEY_ID
from earnings.models import PostbackKind
from earnings.networks import ADAPTERS
from earnings.networks.base import PostbackRefused, RawRequest
from tests.devstack.till import TurnedAway
from tests.earnings.ad_networks import key_pair, new_secret

Thing = dict[str, Any]
_LADDER = [0, 1_000, 1_000_000, 2**53 - 1]
_RATE = Fraction("1.5")
_TYPES = ("push_ads", "video_ads", "offerwall", "surveys")
_RANGES = ("PushAds", "VideoAd", "Offerwall", "Survey")


@dataclass
class Booth:
    """What one user has earned; several fields can be lies."""

    profile_address: str
    drop: str = "EXPERIENCE"
    taken_twice: bool = False
    believes_all: bool = False
    new_drop_each_time: bool = False
    bonus: Decimal = Decimal("0.05")
    commitment: str = ""
    shown_too_much: int = 0
    hides: str = ""
    keeps_back: bool = False
    credits: int = 0
    experience: int = 0
    entries: list[Thing] = field(default_factory=list)
    calls: list[Thing] = field(default_factory=list)
    modifiers: list[Thing] = field(default_factory=list)
    handled: dict[tuple[str, str, str], int] = field(default_factory=dict)
    draws: dict[str, Thing] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=lambda: {it: secrets.token_hex(16) for it in ADAPTERS})
    keys: dict[str, str] = field(default_factory=lambda: {it: new_secret(it) for it in ADAPTERS})

    def post(self, source: str, amount: int) -> None:
        """Add an entry."""
        entry = {"related_user": self.profile_address, "credit_source": source, "credits_earned": amount}
        self.entries.insert(0, {**entry, **self._move(amount)})

    def charge(self, transaction_hash: str, used: int) -> dict[str, int]:
        """Add a relay call, and what comes back of its cost; return the balances around it."""
        moved = self._move(-used)
        self.calls.insert(
            0,
            {
                "transaction_hash": transaction_hash,
                "related_user": self.profile_address,
                "real_cost": used,
                "status": "Success",
                **moved,
            },
        )
        self.experience += used
        back = floor(used * self._back)
        if back and not self.keeps_back:
            self.post("CREDITS_BACK", back)
        return moved

    def _move(self, amount: int) -> dict[str, int]:
        before = self.credits
        self.credits += amount
        return {"credits_before": before, "credits_after": self.credits}

    def described(self, base_url: str) -> dict[str, Thing]:
        """Return what a stack's description says of the networks."""
        return {
            slug: {
                "address": f"{base_url}/api/postbacks/{slug}" + ("/t" if slug != "visit-link" else ""),
                "secret": self.keys[slug],
                "kind": str(adapter.kind),
                "rate": "1.5",
                "hold_hours": 1 if slug == "cpx-research" else 0,
            }
            for slug, adapter in ADAPTERS.items()
        }

    def hear(self, url: str, query: str, headers: Mapping[str, str]) -> tuple[int, str]:
        """Answer a postback as the network's adapter says."""
        slug, token = url.split("/")[5:7]
        adapter = ADAPTERS[slug]
        request = RawRequest(method="GET", url=url, query=query.encode(), headers=headers, path_token=token)
        try:
            fields = adapter.verify(request, secrets=[self.keys[slug]], keys={KEY_ID: key_pair()[1]})
        except PostbackRefused:
            return (200, "") if self.believes_all else (adapter.answers.reject.status, "")
        event = adapter.parse(fields)
        self._take(slug, str(event.kind), event.original_id, event.amount)
        answer = adapter.answers.ok.about(event)
        return answer.status, answer.body

    def manage(self, *arguments: str) -> str:
        """Import a report."""
        rows = list(csv.DictReader(Path(arguments[2]).read_text().splitlines()))
        for row in rows:
            self._take(arguments[1], "CREDIT", row["row_id"], Decimal(row["amount"]))
        return f"{len(rows)} rows imported, 0 had been imported before\n"

    def _take(self, slug: str, kind: str, external_id: str, amount: Decimal) -> None:
        key = slug, kind, external_id
        if slug == "cpx-research" or (key in self.handled and not self.taken_twice):
            return
        if kind == PostbackKind.REVERSAL:
            worth = self.handled[slug, "CREDIT", external_id]
            self.post("EARNING_REVERSAL", -worth)
            self.experience -= worth
            return
        worth = floor(Fraction(amount) * _RATE * (1 + self._raised(ADAPTERS[slug].kind)))
        self.handled[key] = worth
        self.post(str(ADAPTERS[slug].kind), worth)
        self.experience += worth

    def _raised(self, kind: str) -> Fraction:
        active = [it["value"] for it in self.modifiers if it["modifier_type"] == f"BONUS_{kind}_CREDITS"]
        return Fraction(Decimal("0.05") if self._level else 0) + sum(map(Fraction, map(str, active)))

    @property
    def _level(self) -> int:
        return max(level for level, bound in enumerate(_LADDER) if bound <= self.experience)

    @property
    def _back(self) -> Fraction:
        active = [it["value"] for it in self.modifiers if it["modifier_type"] == "BONUS_CREDITS_BACK"]
        return Fraction("0.02" if self._level else 0) + sum(map(Fraction, map(str, active)))

    def networks(self, _body: Thing) -> Thing:
        """Answer adNetworks."""
        kinds = {slug: str(adapter.kind) for slug, adapter in ADAPTERS.items()}
        known = [
            {"network": slug, "kind": kinds[slug], "userReference": name} for slug, name in self.names.items()
        ]
        return {"networks": known}

    def drops(self, _body: Thing) -> dict[str, float]:
        """Answer checkInDrops."""
        ends = {"min": 0.01, "max": 0.5}
        table = {f"{end}BonusCredits{name}": value for end, value in ends.items() for name in _RANGES}
        whole = {"minExperience": 1, "maxExperience": 90, "minCredits": 1, "maxCredits": 90}
        return {**table, "minCreditsBackPercent": 0.01, "maxCreditsBackPercent": 0.5, **whole}

    def check_in(self, key: str) -> Thing:
        """Answer executeCheckIn."""
        if key in self.draws and not self.new_drop_each_time:
            return self.draws[key]
        if self.draws and not self.new_drop_each_time:
            raise TurnedAway(409, "check-in-unavailable")
        whole = self.drop in {"EXPERIENCE", "CREDITS"}
        drop = {"type": self.drop, "value": 7 if whole else 0.25}
        if not whole:
            drop["effectiveTimeInMinutes"] = 60
        self.draws[key] = {"result": drop, "possibleResults": [{"type": "CREDITS", "value": 1}, drop]}
        self._apply(drop)
        return self.draws[key]

    def _apply(self, drop: Thing) -> None:
        if drop["type"] == "EXPERIENCE":
            self.experience += drop["value"]
        elif drop["type"] == "CREDITS":
            self.post("CHECK_IN", drop["value"])
        else:
            now = datetime.now(UTC)
            ends = now + timedelta(minutes=drop["effectiveTimeInMinutes"])
            self.modifiers.append(
                {
                    "modifier_type": drop["type"],
                    "value": drop["value"],
                    "created_at": now.isoformat(),
                    "expires_at": ends.isoformat(),
                }
            )

    def fairness(self, _body: Thing) -> Thing:
        """Answer checkInFairness."""
        seed, today = secrets.token_bytes(32), datetime.now(UTC).date()
        told = self.commitment or hashlib.sha256(seed).hexdigest()
        days = {"today": 0, "tomorrow": 1}
        promised = {
            name: {"day": str(today + timedelta(days=ahead)), "commitment": told}
            for name, ahead in days.items()
        }
        kept = {"day": str(today - timedelta(days=2)), "commitment": told, "seed": seed.hex()}
        return {**promised, "revealed": [kept]}

    def dashboard(self, _body: Thing) -> Thing:
        """Answer dashboardInfo."""
        low, high = _LADDER[self._level : self._level + 2]
        terms = {f"bonus_creds_{name}": float(self.bonus if self._level else 0) for name in _TYPES}
        badge = {
            "exp_lower_bound": low,
            "exp_upper_bound": high,
            "exp_growth_rate": 1.0,
            "credits_back_percent": 0.02 if self._level else 0.0,
            **terms,
        }
        return {
            "userInfo": {
                "credits": self.credits + self.shown_too_much,
                "permanentExp": self.experience,
                "isSubscriber": False,
                "canCheckIn": not self.draws,
            },
            "permanentBadge": badge,
            "subscriberBadge": badge,
            "modifiers": list(self.modifiers),
            "earningHistory": [it for it in self.entries if it["credit_source"] != self.hides][:100],
            "transactionHistory": self.calls[:100],
            "checkInDropTable": self.drops({}),
        }
