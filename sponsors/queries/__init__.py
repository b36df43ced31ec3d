"""Reads, for a call, the sponsor's policies in force, their usage, and the sponsor's credits."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from django.core.serializers.json import DjangoJSONEncoder

from gateway.chain.config import home
from gateway.common import db
from gateway.common.statements import Statements
from sponsors import models
from sponsors.errors import SponsorBudgetUsed, SponsorWithoutCredits
from sponsors.models import Sponsor, UsageScope, UsedVoucher, VoucherSigner
from sponsors.rules.policies import (
    Budget,
    Holding,
    Limits,
    PolicyVersion,
    Profiles,
    Purpose,
    Target,
    Usage,
)


class _Sql(Statements, file=__file__):
    offers: str


class Wanted(NamedTuple):
    """A user's call and its sponsor: given by slug, or by the policy version of a quote, which alone may then pay."""

    slug: str | None
    version_id: int | None
    user_id: int
    profile: str
    now: datetime


@dataclass(slots=True)
class Offer:
    """A sponsor's enabled policies in order, their usage for this user, and the sponsor's available credits."""

    slug: str
    is_frozen: bool
    available: int
    profile_since: datetime
    versions: list[PolicyVersion] = field(default_factory=list)
    usage: dict[int, Usage] = field(default_factory=dict)
    listed: set[int] = field(default_factory=set)
    budget: Sequence[Budget] = ()

    def require(self, credits: int) -> None:
        """
        Refuse credits that the sponsor cannot pay now.

        Raises:
            SponsorWithoutCredits: the account does not have them.
            SponsorBudgetUsed: the budget of the day or the month does not have them.
        """
        if self.available < credits:
            raise SponsorWithoutCredits(
                f"The call may cost the sponsor {credits} credits, and {self.available} are available.",
                sponsor=self.slug,
            )
        for part in self.budget:
            if part.used + credits > part.limit:
                raise SponsorBudgetUsed(part.refusal(credits), sponsor=self.slug, **part.members())


class VoucherState(NamedTuple):
    """The addresses that may sign a sponsor's vouchers, and whether a call has already used this voucher."""

    signers: frozenset[str]
    is_used: bool


def default_sponsor() -> str | None:
    """Return the name of the operator's default sponsor, if there is one."""
    return Sponsor.objects.filter(is_default=True).values_list("slug", flat=True).first()


def voucher_state(*, sponsor: str, voucher_id: bytes) -> VoucherState:
    """Return the sponsor's active signers, and whether the voucher is used."""
    active = VoucherSigner.objects.filter(sponsor__slug=sponsor, removed_at=None)
    signers = active.values_list("address", flat=True)
    used = UsedVoucher.objects.filter(sponsor__slug=sponsor, voucher_id="0x" + voucher_id.hex())
    return VoucherState(frozenset(signers), used.exists())


def offers_for(calls: Sequence[Wanted]) -> list[Offer | None]:
    """Return the offer for each call, None if no sponsor has the name; one statement."""
    wanted = [
        {**call._asdict(), "place": place, "now": call.now.isoformat()} for place, call in enumerate(calls)
    ]
    offers: list[Offer | None] = [None] * len(calls)
    for place, slug, is_frozen, available, since, version, is_listed, used, budget in db.all_rows(
        _Sql.offers, {"calls": json.dumps(wanted)}
    ):
        offer = offers[place] = offers[place] or Offer(
            slug, is_frozen, available, since, budget=_budget(budget)
        )
        # Django's cursor returns JSON columns as text.
        if version is not None:
            terms = _version(version)
            offer.versions.append(terms)
            offer.usage[terms.version_id] = _usage(json.loads(used or "{}"))
            if is_listed:
                offer.listed.add(terms.version_id)
    return offers


@lru_cache(maxsize=1024)
def _version(text: str) -> PolicyVersion:
    """Return a version from its JSON; cached, because versions never change."""
    row = json.loads(text)
    rule, counterpart = Profiles(row["profiles"]), row["counterpart"]
    return PolicyVersion(
        version_id=row["id"],
        policy=row["policy"],
        chain_id=row["chain_id"] or home().id,
        purpose=Purpose(row["purpose"]),
        targets=tuple(
            Target(each["contract"], frozenset(map(_unhex, each.get("functions", ()))))
            for each in row["targets"]
        ),
        profiles=rule,
        new_since=_time(row["new_since"]),
        holding=Holding(rule, counterpart, row["least_balance"] or 1) if counterpart else None,
        limits=Limits(
            call=row["call_credits"],
            user_day=row["user_day_credits"],
            user_total=row["user_credits"],
            user_calls=row["user_calls"],
            window=row["window_credits"],
            window_calls=row["window_calls"],
            window_seconds=row["window_seconds"],
            campaign=row["campaign_credits"],
            campaign_calls=row["campaign_calls"],
        ),
        gas_price_ceiling_wei=row["gas_price_ceiling_wei"],
        starts_at=_time(row["starts_at"]),
        ends_at=_time(row["ends_at"]),
        share_percent=row["share_percent"],
        first_credits=row["first_credits"] or 0,
    )


def rules_of(draft: models.PolicyVersion) -> PolicyVersion:
    """
    Return the terms of a version that need not be stored.

    Raises:
        ValueError: the terms contradict each other.
    """
    names = [each.attname for each in models.PolicyVersion._meta.concrete_fields]
    row = {name: getattr(draft, name) for name in names} | {"id": 0, "policy": "draft", "created_at": None}
    return _version.__wrapped__(json.dumps(row, cls=DjangoJSONEncoder))


def _budget(text: str | None) -> Sequence[Budget]:
    rows = json.loads(text) if text else ()
    return [Budget(period, datetime.fromisoformat(ends), *numbers) for period, ends, *numbers in rows]


def _unhex(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _usage(parts: dict[str, list[int]]) -> Usage:
    """Convert a policy's usage, given as [credits, calls] by scope."""
    used = {scope: parts.get(scope, [0, 0]) for scope in UsageScope.values}
    user, window, campaign = used["user"], used["window"], used["campaign"]
    return Usage(
        user_day=used["user-day"][0],
        user_total=user[0],
        user_calls=user[1],
        window=window[0],
        window_calls=window[1],
        campaign=campaign[0],
        campaign_calls=campaign[1],
    )
