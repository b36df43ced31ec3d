"""The demo's sponsor: the first demo profile owns it, and its policies are those of docs/sponsors.md."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from devstack.world.keys import address_of

_NAME, _CREDITS, _CALLS = "my-dapp", 1_000_000, 10
_LIMITS = {"call_credits": 10_000, "campaign_credits": _CREDITS}


@transaction.atomic
def open_sponsor(*, owner: str, voucher_key: str, staff: Any, now: datetime) -> dict[str, Any]:
    """
    Open the sponsor on the first call; return its name, its policies, and the key that signs its vouchers.

    It pays for the first calls of every profile that has signed in since yesterday, and for calls with a voucher.
    """
    from devstack.demo import requests
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
        sponsor = _funded(staff)
        members.put(sponsor=sponsor, profile_address=owner, role=Member.Role.OWNER, actor=staff)
        signer = VoucherSigner(sponsor=sponsor, address=address_of(voucher_key))
        signers.save(signer, {})
        requests.added("add_voucher_signer", signer, "sponsor", "address", staff=staff)
        for position, (name, own) in enumerate(terms.items()):
            _add_policy(sponsor, name, position, own, staff)
    return {"name": _NAME, "policies": list(terms), "voucher_key": voucher_key}


def _funded(staff: Any) -> Any:
    from devstack.demo import requests
    from sponsors.models import Sponsor
    from sponsors.services import funding

    sponsor = Sponsor(slug=_NAME, name="My dApp")
    funding.open_account(sponsor)
    reason = "Demo credits of the development stack."
    requests.adjust(owner=sponsor, credits=_CREDITS, key=f"demo:{_NAME}", staff=staff, reason=reason)
    return sponsor


def _add_policy(sponsor: Any, name: str, position: int, terms: dict[str, Any], staff: Any) -> None:
    from devstack.demo import requests
    from sponsors.models import Policy, PolicyVersion
    from sponsors.services import policies

    policy = Policy.objects.create(sponsor=sponsor, name=name, position=position)
    version = PolicyVersion(policy=policy, **_LIMITS, **terms)
    policies.save_version(version, {})
    requests.added("add_policy_version", version, "policy", *_LIMITS, *terms, staff=staff)
