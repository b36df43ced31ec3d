"""The demo's sponsor: the first demo profile owns it, and its policies are those of docs/sponsors.md."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from devstack.world.keys import address_of

_NAME, _CREDITS, _CALLS = "my-dapp", 1_000_000, 10
_LIMITS = {"call_credits": 10_000, "campaign_credits": _CREDITS}


@transaction.atomic
def open_sponsor(*, owner: str, voucher_key: str, now: datetime) -> dict[str, Any]:
    """
    Open the sponsor on the first call; return its name, its policies, and the key that signs its vouchers.

    It pays for the first calls of every profile that has signed in since yesterday, and for calls with a voucher.
    """
    from sponsors.models import Member, ProfileRule, Sponsor, VoucherSigner
    from sponsors.services import members, signers

    terms: dict[str, dict[str, Any]] = {
        "first-calls": {
            "profiles": ProfileRule.NEW,
            "new_since": now - timedelta(days=1),
            "user_calls": _CALLS,
        },
        "vouchers": {"profiles": ProfileRule.VOUCHED},
    }
    if not Sponsor.objects.filter(slug=_NAME).exists():
        sponsor = _funded()
        members.put(sponsor=sponsor, profile_address=owner, role=Member.Role.OWNER)
        signers.save(VoucherSigner(sponsor=sponsor, address=address_of(voucher_key)), {})
        for position, (name, own) in enumerate(terms.items()):
            _add_policy(sponsor, name, position, own)
    return {"name": _NAME, "policies": list(terms), "voucher_key": voucher_key}


def _funded() -> Any:
    from credits.services import entries
    from sponsors.models import Sponsor
    from sponsors.services import funding

    sponsor = Sponsor(slug=_NAME, name="My dApp")
    funding.open_account(sponsor)
    reason = "Demo credits of the development stack."
    entries.adjust_sponsor(
        sponsor_id=sponsor.pk, credits=_CREDITS, key=f"demo:{_NAME}", actor=None, reason=reason
    )
    return sponsor


def _add_policy(sponsor: Any, name: str, position: int, terms: dict[str, Any]) -> None:
    from sponsors.models import Policy, PolicyVersion
    from sponsors.services import policies

    policy = Policy.objects.create(sponsor=sponsor, name=name, position=position)
    policies.save_version(PolicyVersion(policy=policy, **_LIMITS, **terms), {})
