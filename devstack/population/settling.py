"""Let people come, live and be written down; once per database."""

import random
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import transaction
from eth_account import Account
from eth_utils.address import to_checksum_address

from checkin.models import CheckIn
from checkin.services import seeds
from credits.models import CreditAccount, CreditEntry, CreditHold
from credits.services import adjustments
from devstack.population.calling import call
from devstack.population.earning import earn
from devstack.population.favours import adjust, favour, give_back, sign_in
from devstack.population.life import Life
from devstack.population.town import DAYS, Town
from devstack.population.visiting import check_in
from devstack.population.waiting import leave_waiting
from earnings.models import NetworkUser, Postback
from relay.models import Attempt, Relayer, RelayTransaction
from rewards.models import ExperienceEntry, Modifier, Progress
from users.models import SignInSession, User

_WAITING = 4
# Rows name rows of the kinds before them.
_ORDER: tuple[type[Any], ...] = (
    NetworkUser,
    Modifier,
    CheckIn,
    CreditEntry,
    ExperienceEntry,
    CreditHold,
    Postback,
    RelayTransaction,
    Attempt,
    SignInSession,
)


def populate(*, seed: str, people: int, staff: User, rpc_url: str, now: datetime) -> bool:
    """Write down the people of this seed with all that they have done; False where they have been before."""
    if residents(seed=seed, people=people):
        return False
    rng = _beginning(seed)
    key, addresses = "0x" + rng.randbytes(32).hex(), _addresses(rng, people)
    with transaction.atomic():
        _settle(addresses, key=key, rng=rng, staff=staff, rpc_url=rpc_url, now=now)
    seeds.commit_and_reveal(now=now)
    return True


def residents(*, seed: str, people: int) -> list[User]:
    """Return the users of this seed, the first one first."""
    rng = _beginning(seed)
    rng.randbytes(32)
    return list(User.objects.filter(profile_address__in=_addresses(rng, people)).order_by("pk"))


def _beginning(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - nothing here is secret


def _addresses(rng: random.Random, people: int) -> list[str]:
    return [_address(rng) for _ in range(people)]


def _settle(
    addresses: list[str], *, key: str, rng: random.Random, staff: User, rpc_url: str, now: datetime
) -> None:
    relayer = Relayer.objects.create(
        address=Account.from_key(key).address,
        next_account_nonce=0,
        mined_account_nonce=0,
        is_active=False,
        synced_at=now,
    )
    town = Town(rng, now, staff, relayer)
    lives = [_born(town, address) for address in addresses]
    for life in lives:
        _plan(life)
        life.live()
    rich = sorted(lives, key=lambda life: -life.account.available)
    leave_waiting(rich[:_WAITING], key=key, rpc_url=rpc_url, now=now)
    _write(lives)
    _ask_for_large_adjustments(rich[-_WAITING:])


def _ask_for_large_adjustments(lives: list[Life]) -> None:
    """Leave requests of a colleague that only somebody else may agree to."""
    colleague = User.objects.create_user("colleague", is_staff=True)
    for place, life in enumerate(lives, 1):
        adjustments.request(
            user=life.user,
            credits=place * 10 * settings.ADJUSTMENT_APPROVAL_LIMIT,
            key=f"demo:large:{life.user.profile_address}",
            actor=colleague,
            reason="An offer worth this much was never credited; the network confirms it.",
        )


def _address(rng: random.Random) -> str:
    return str(to_checksum_address(rng.randbytes(20)))


def _born(town: Town, address: str) -> Life:
    joined_at = town.now - timedelta(days=town.rng.uniform(0.2, DAYS - 1))
    user = User(
        username=address, profile_address=address, password=make_password(None), date_joined=joined_at
    )
    account = CreditAccount(user=user, created_at=joined_at)
    return Life(
        town,
        user,
        account,
        Progress(user=user),
        controller=_address(town.rng),
        key_manager=_address(town.rng),
    )


def _plan(life: Life) -> None:
    """Decide what somebody does, and how often, from the day they joined until a few minutes ago."""
    rng, now = life.town.rng, life.town.now
    span = now - timedelta(minutes=5) - life.user.date_joined
    zeal = rng.choice((0.3, 1, 1, 2, 4))
    for action, most in ((earn, 10), (check_in, 8), (call, 8)):
        for _ in range(round(rng.uniform(0, most) * zeal)):
            life.plan(life.user.date_joined + rng.random() * span, action)
    if rng.random() < 0.2:
        life.plan(life.user.date_joined + rng.random() * span, adjust)
    if rng.random() < 0.15:
        life.plan(life.user.date_joined + rng.random() * span, favour)
    if rng.random() < 0.05:
        life.plan(life.user.date_joined + rng.random() * span, give_back)
    for _ in range(rng.randint(1, 3)):
        life.plan(life.user.date_joined + rng.random() * span, sign_in)


def _write(lives: list[Life]) -> None:
    User.objects.bulk_create(life.user for life in lives)
    CreditAccount.objects.bulk_create(life.account for life in lives)
    Progress.objects.bulk_create(life.progress for life in lives)
    found: defaultdict[type[Any], list[Any]] = defaultdict(list)
    for life in lives:
        for row in (
            *life.names.values(),
            *life.modifiers,
            *life.entries,
            *life.experience,
            *life.holds,
            *life.rows,
        ):
            found[type(row)].append(row)
    for model in _ORDER:
        model.objects.bulk_create(found[model], batch_size=1_000)
