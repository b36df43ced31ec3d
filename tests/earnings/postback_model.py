"""Many postbacks of all networks: which user earns what, in which order, and what must be stored afterwards."""

import random
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from django.conf import settings
from django.utils import timezone

from credits.models import CreditAccount, EntrySource
from credits.services.reconciliation import find_differences
from devstack.ad_networks.signing import (
    KEY_ID,
    SIGNERS,
    WITHOUT_REVERSALS,
    Reward,
    new_key_pair,
    sign,
)
from earnings.models import Postback, PostbackState, VerifierKeySet
from earnings.networks import ADAPTERS
from earnings.networks.base import RawRequest
from earnings.rules import REVERSED_HOLD
from earnings.services import earnings, networks, postbacks
from rewards.models import Badge, Progress
from tests.credits.causes import causeless
from tests.earnings.ad_networks import SENDER, issue_path_token, limits_of, set_secret

_REPEATS, _REVERSALS = 0.30, 0.05


@dataclass(frozen=True)
class OpenedNetworks:
    """What each network signs with, its path token and rate; the users' ids, and their references by network."""

    secrets: dict[str, str]
    tokens: dict[str, str]
    rates: dict[str, Decimal]
    users: list[int]
    references: list[dict[str, str]]


@dataclass(frozen=True)
class PlannedPostback:
    """One postback of the plan; `user` is an index."""

    slug: str
    user: int
    reward: Reward


@dataclass(frozen=True)
class Plan:
    """The postbacks in the order in which they are sent, and the credits of each user afterwards."""

    postbacks: list[PlannedPostback]
    credits: list[int]
    distinct: int


def set_up_networks(users: list[Any], *, now: datetime) -> OpenedNetworks:
    """
    Enable every network that can be called, each at a rate of its own.

    Badges raise nothing afterwards: the credits of an earning must not depend on when it arrives.
    """
    Badge.objects.update(
        exp_growth_rate=1,
        bonus_creds_push_ads=0,
        bonus_creds_video_ads=0,
        bonus_creds_offerwall=0,
        bonus_creds_surveys=0,
    )
    rates = {slug: Decimal(secrets.randbelow(300) + 50) / 100 for slug in SIGNERS}
    network_secrets = {slug: _new_secret(slug, now=now) for slug in SIGNERS}
    tokens = {slug: issue_path_token(slug=slug) for slug in SIGNERS}
    rows = {
        slug: networks.configure(slug=slug, is_enabled=True, rate=rate, **limits_of(slug, daily_cap=10**9))
        for slug, rate in rates.items()
    }
    return OpenedNetworks(
        secrets=network_secrets,
        tokens=tokens,
        rates=rates,
        users=[user.pk for user in users],
        references=[
            {slug: networks.reference_of(user=user, network=row) for slug, row in rows.items()}
            for user in users
        ],
    )


def _new_secret(slug: str, *, now: datetime) -> str:
    if ADAPTERS[slug].needs_secret:
        secret = secrets.token_hex(16)
        set_secret(slug=slug, secret=secret, now=now)
        return secret
    private, public = new_key_pair()
    VerifierKeySet.objects.update_or_create(slug=slug, defaults={"keys": {KEY_ID: public}, "fetched_at": now})
    return private


def make_plan(setup: OpenedNetworks, rng: random.Random, *, count: int, now: datetime) -> Plan:
    """
    Return `count` postbacks, 30 % of them repeats and 5 % reversals, shuffled.

    So reversals may arrive before what they reverse, and repeats long after it.
    """
    reversals, repeats = round(count * _REVERSALS), round(count * _REPEATS)
    credited = [_credit(setup, rng, now) for _ in range(count - reversals - repeats)]
    undone = rng.sample([credit for credit in credited if credit.slug not in WITHOUT_REVERSALS], reversals)
    distinct = credited + [
        replace(credit, reward=replace(credit.reward, is_reversal=True)) for credit in undone
    ]
    planned = distinct + rng.choices(distinct, k=repeats)
    rng.shuffle(planned)
    undone_ids = {credit.reward.external_id for credit in undone}
    totals = [0] * len(setup.users)
    for credit in credited:
        if credit.reward.external_id not in undone_ids:
            worth = Decimal(credit.reward.amount) * setup.rates[credit.slug]
            totals[credit.user] += int(worth.to_integral_value(rounding=ROUND_FLOOR))
    return Plan(planned, totals, len(distinct))


def _credit(setup: OpenedNetworks, rng: random.Random, now: datetime) -> PlannedPostback:
    slug, user = rng.choice(list(setup.rates)), rng.randrange(len(setup.users))
    reward = Reward(
        external_id=f"o{rng.getrandbits(80):020x}",
        user=setup.references[user][slug],
        amount=str(rng.randint(1, 400)),
        at=now,
    )
    return PlannedPostback(slug, user, reward)


def signed_request(setup: OpenedNetworks, postback: PlannedPostback) -> tuple[str, RawRequest]:
    """Return the network and what it sends."""
    token = setup.tokens[postback.slug]
    url = f"{settings.PUBLIC_URL}/api/postbacks/{postback.slug}/{token}"
    signed = sign(postback.slug, postback.reward, url=url, secret=setup.secrets[postback.slug])
    return postback.slug, RawRequest(
        method="GET",
        url=url,
        query=signed.query.encode(),
        headers={name.lower(): value for name, value in signed.headers.items()},
        path_token=signed.path_token or token,
        sender=SENDER,
    )


def send(requests: Iterable[tuple[str, RawRequest]]) -> Counter[int]:
    """Send one after the other to the service and count the responses by status."""
    return Counter(
        postbacks.receive(slug=slug, request=request, now=timezone.now()).status for slug, request in requests
    )


def differences(users: Sequence[int], plan: Plan, *, now: datetime) -> list[str]:
    """
    Release held earnings, and return every difference between the database and the plan.

    A user whose first earnings were often reversed, which chance can bring, has the longest hold.
    """
    while earnings.release_due(now=now + REVERSED_HOLD + timedelta(hours=2)):
        pass
    expected = dict(zip(users, plan.credits, strict=True))
    totals = {user: _credits_and_experience(user) for user in expected}
    lines = [
        f"user {user} has {totals[user]}, and must have {amount} of both"
        for user, amount in expected.items()
        if totals[user] != (amount, amount)
    ]
    lines += [str(difference) for difference in find_differences()]
    lines += [
        str(finding)
        for finding in causeless(
            *{adapter.kind for adapter in ADAPTERS.values()}, EntrySource.EARNING_REVERSAL
        )
    ]
    stored = Postback.objects.filter(user_id__in=users)
    if stored.count() != plan.distinct:
        lines.append(f"{stored.count()} postbacks stored, {plan.distinct} expected")
    if stored.filter(is_conflicting=True).exists() or stored.filter(state=PostbackState.RECEIVED).exists():
        lines.append("a postback is conflicting or still waits for its credit")
    return lines


def _credits_and_experience(user_id: int) -> tuple[int, int]:
    account = CreditAccount.objects.filter(user_id=user_id).first() or CreditAccount()
    progress = Progress.objects.filter(user_id=user_id).first() or Progress()
    return account.balance, progress.permanent_experience
