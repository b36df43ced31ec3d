"""Sponsors with credits and a policy, as a member of staff makes them."""

import secrets
from typing import Any

from credits.services import entries
from sponsors.models import Policy, PolicyVersion, Sponsor
from sponsors.services.funding import open_account


def make_sponsor(credits: int = 100_000) -> Sponsor:
    """Return a new sponsor with these credits."""
    sponsor = Sponsor(slug=f"s-{secrets.token_hex(6)}", name="A dApp")
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
