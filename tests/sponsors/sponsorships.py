"""Sponsors with credits and a policy, as a member of staff makes them."""

import json
import secrets
from datetime import datetime
from typing import Any

from credits.services import entries
from gateway.common import db
from sponsors.models import Policy, PolicyVersion, Sponsor
from sponsors.services.funding import open_account
from tests.factories import random_address


def make_sponsor(credits: int = 100_000, *, slug: str = "") -> Sponsor:
    """Return a new sponsor with these credits."""
    sponsor = Sponsor(slug=slug or f"s-{secrets.token_hex(6)}", name="A dApp")
    open_account(sponsor)
    if credits:
        entries.adjust_sponsor(
            sponsor_id=sponsor.pk, credits=credits, key=secrets.token_hex(8), actor=None, reason="a pack"
        )
    return sponsor


def make_policy(sponsor: Sponsor, *, position: int = 0, **terms: Any) -> PolicyVersion:
    """Return the first version of a new policy with these terms; without limits but for a call."""
    policy = Policy.objects.create(sponsor=sponsor, name=f"p-{secrets.token_hex(4)}", position=position)
    return new_version(policy, **terms)


def new_version(policy: Policy, **terms: Any) -> PolicyVersion:
    """Return the next version of the policy with these terms."""
    number = PolicyVersion.objects.filter(policy=policy).count() + 1
    terms = {"call_credits": 10_000, **terms}
    return PolicyVersion.objects.create(policy=policy, number=number, **terms)


def call_of(
    version: PolicyVersion,
    *,
    hold_id: int,
    user_id: int,
    key: str,
    part: int,
    now: datetime,
    voucher: str | None = None,
) -> dict[str, Any]:
    """
    Return a call whose user's hold is placed, and of which the sponsor is to pay a part.

    `voucher` is the id of one that the call brings.
    """
    return {
        "hold_id": hold_id,
        "user_id": user_id,
        "key": key,
        "now": now.isoformat(),
        "version": version.pk,
        "sponsor_credits": part,
        "is_quoted": False,
        "voucher": voucher,
        "signer": voucher and random_address(),
    }


def pay_all(*calls: dict[str, Any]) -> list[str | None]:
    """Have sponsors pay for calls in one statement; return for each the rule that refuses it."""
    placed = [{**call, "place": place} for place, call in enumerate(calls)]
    rows = db.all_rows("SELECT * FROM sponsors_pay(%(calls)s::jsonb)", {"calls": json.dumps(placed)})
    outcomes = dict(rows)
    assert len(rows) == len(outcomes) == len(calls)
    return [outcomes[place] for place in range(len(calls))]


def pay(version: PolicyVersion, **call: Any) -> str | None:
    """Have the sponsor pay its part of a call; return the rule that refuses it."""
    return pay_all(call_of(version, **call))[0]
