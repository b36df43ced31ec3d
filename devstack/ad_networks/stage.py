"""Networks, people and verifier keys in the records of a service, and what is left there after a storm."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings

from credits.models import CreditAccount
from credits.services.reconciliation import find_differences
from devstack.ad_networks.dialects import AD_UNIT, DIALECTS, KEY_ID, speak
from devstack.ad_networks.plan import Plan, Said
from earnings.models import Postback, VerifierKeySet
from earnings.networks import ADAPTERS
from earnings.services import earnings, networks
from rewards.models import Badge

SENDER = "203.0.113.7"
_GUARDS: dict[str, dict[str, Any]] = {
    "cpx-research": {
        "allowed_addresses": [SENDER], "per_event_cap": 10**6, "daily_cap": 10**9, "hold_hours": 1,
    },
    "admob": {"allowed_ad_units": [AD_UNIT]},
}  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """What each network signs with and is reached at, and the users' primary keys."""

    secrets: dict[str, str]
    tokens: dict[str, str]
    rates: dict[str, Decimal]
    people: list[int]
    references: list[dict[str, str]]


def set_stage(people: list[Any], *, now: datetime) -> Stage:
    """
    Enable every network that can be called, each at a rate of its own.

    Badges raise nothing afterwards: what an earning is worth must not depend on its turn.
    """
    Badge.objects.update(
        exp_growth_rate=1,
        bonus_creds_push_ads=0,
        bonus_creds_video_ads=0,
        bonus_creds_offerwall=0,
        bonus_creds_surveys=0,
    )
    rates = {slug: Decimal(secrets.randbelow(300) + 50) / 100 for slug in DIALECTS}
    signs_with = {slug: _secret(slug, now=now) for slug in DIALECTS}
    tokens = {slug: networks.issue_path_token(slug=slug) for slug in DIALECTS}
    rows = {
        slug: networks.configure(slug=slug, is_enabled=True, rate=rates[slug], **_GUARDS.get(slug, {}))
        for slug in DIALECTS
    }
    references = [
        {slug: networks.reference_of(user=person, network=row) for slug, row in rows.items()}
        for person in people
    ]
    return Stage(signs_with, tokens, rates, [person.pk for person in people], references)


def _secret(slug: str, *, now: datetime) -> str:
    if ADAPTERS[slug].needs_secret:
        secret = secrets.token_hex(16)
        networks.set_secret(slug=slug, secret=secret, now=now)
        return secret
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    VerifierKeySet.objects.update_or_create(
        slug=slug, defaults={"keys": {KEY_ID: public.decode()}, "fetched_at": now}
    )
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def written(stage: Stage, said: Said) -> dict[str, Any]:
    """Return the signed postback as plain values, for a file."""
    token = stage.tokens[said.slug]
    url = f"{settings.PUBLIC_URL}/api/postbacks/{said.slug}/{token}"
    sent = speak(said.slug, said.told, url=url, secret=stage.secrets[said.slug])
    headers = {name.lower(): value for name, value in sent.headers.items()}
    return {
        "slug": said.slug,
        "url": url,
        "query": sent.query,
        "headers": headers,
        "path_token": sent.path_token or token,
    }


def faults(stage: Stage, plan: Plan, *, now: datetime) -> list[str]:
    """Release what was held, and return every difference from what the plan says; an empty list is a calm sea."""
    while earnings.release_due(now=now + timedelta(hours=2)):
        pass
    wanted = dict(zip(stage.people, plan.credits, strict=True))
    found = {account.user_id: account for account in CreditAccount.objects.filter(user_id__in=stage.people)}
    told = [
        f"user {user} has {_credits_and_experience(found.get(user))}, and must have {amount} of both"
        for user, amount in wanted.items()
        if _credits_and_experience(found.get(user)) != (amount, amount)
    ]
    told += [str(finding) for finding in find_differences()]
    stored = Postback.objects.filter(user_id__in=stage.people)
    if stored.count() != plan.distinct:
        told.append(f"{stored.count()} postbacks stored, {plan.distinct} wanted")
    if stored.filter(is_conflicting=True).exists() or stored.filter(state="RECEIVED").exists():
        told.append("a postback is contradicted or still waits for its credit")
    return told


def _credits_and_experience(account: CreditAccount | None) -> tuple[int, int]:
    return (account.balance, account.permanent_experience) if account else (0, 0)
