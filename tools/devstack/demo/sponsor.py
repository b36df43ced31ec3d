"""The demo's sponsor: the first demo profile owns it; docs/sponsors.md and docs/profiles.md use its policies."""

import hashlib
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from devstack.world.keys import address_of

_NAME, _CREDITS, _CALLS = "my-dapp", 1_000_000, 10
_DAY_SECONDS, _PROFILES_A_DAY = 86_400, 100
_LIMITS = {"call_credits": 10_000, "campaign_credits": _CREDITS}


@transaction.atomic
def open_sponsor(
    *, owner: str, voucher_key: str, create_key: str, staff: Any, now: datetime
) -> dict[str, Any]:
    """
    Open the sponsor on the first call; return its name, its policies, its vouchers' key, and its server's API key.

    It pays for the first calls of every profile that has signed in since yesterday, for calls with a voucher, and for
    new profiles that its server requests.
    """
    from sponsors.models import ProfileRule, Purpose, Sponsor

    terms: dict[str, dict[str, Any]] = {
        "first-calls": {
            "profiles": ProfileRule.NEW,
            "new_since": now - timedelta(days=1),
            "user_calls": _CALLS,
        },
        "vouchers": {"profiles": ProfileRule.VOUCHED},
        "newcomers": {
            "purpose": Purpose.PROFILES,
            "window_seconds": _DAY_SECONDS,
            "window_calls": _PROFILES_A_DAY,
        },
    }
    sponsor = Sponsor.objects.filter(slug=_NAME).first() or _opened(owner, voucher_key, staff)
    for position, (name, own) in enumerate(terms.items()):
        if not sponsor.policies.filter(name=name).exists():
            _add_policy(sponsor, name, position, own, staff)
    _keep_key(sponsor, create_key, owner)
    return {"name": _NAME, "policies": list(terms), "voucher_key": voucher_key, "create_key": create_key}


def _opened(owner: str, voucher_key: str, staff: Any) -> Any:
    from devstack.demo import requests
    from sponsors.models import Member, VoucherSigner
    from sponsors.services import members, signers

    sponsor = _funded(staff)
    members.put(sponsor=sponsor, profile_address=owner, role=Member.Role.OWNER, actor=staff)
    signer = VoucherSigner(sponsor=sponsor, address=address_of(voucher_key))
    signers.save(signer, {})
    requests.added("add_voucher_signer", signer, "sponsor", "address", staff=staff)
    return sponsor


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


def _keep_key(sponsor: Any, text: str, owner: str) -> None:
    """Store the key on the first call as the service does: as a hash. The stack has its text, also after a restart."""
    from sponsors.models import ApiKey
    from users.models import User

    ApiKey.objects.get_or_create(
        key_hash=hashlib.sha256(text.encode()).hexdigest(),
        defaults={
            "sponsor": sponsor,
            "name": "server of the demo",
            "hint": text[-4:],
            "scopes": ["create"],
            "created_by": User.objects.get(profile_address=owner),
        },
    )
