"""Generated users, who earn, check in, relay calls and get adjustments by staff over some weeks."""

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import cycle
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction
from eth_utils.address import to_checksum_address

from checkin.errors import CheckInUnavailable
from checkin.services import checkins, seeds
from credits.services import adjustments
from devstack.ad_networks.signing import WITHOUT_REVERSALS, Reward, sign
from devstack.demo import requests
from devstack.demo.clock import written_at
from devstack.demo.relay_calls import Caller, relay_calls
from earnings.models import AdNetwork
from earnings.networks.base import RawRequest
from earnings.services import earnings, networks, postbacks
from rewards.models import ModifierType
from rewards.services import modifiers
from users.models import User
from users.services import sessions
from users.services.profiles import user_of_profile

_DAYS, _STEPS, _ACTIVE = 30, 24, 2
_RELAYING_STEPS = (12, 18, 22)
_CALLER_CREDITS, _LARGE_ADJUSTMENTS = 20_000, 3
# AdMob's private key is not available here.
_SLUGS = (
    "levelplay", "tapjoy", "adgem", "ayet-studios", "bitlabs", "cpx-research", "theoremreach", "visit-link",
)  # fmt: skip
_HOLDING_SLUG, _REVERSING_SLUG = "cpx-research", "tapjoy"
_ACTIONS = {"earn": 12, "check_in": 6, "sign_in": 2, "get_modifier": 1, "be_corrected": 1}
_CORRECTIONS = (
    (500, "Demo: an offer failed."),
    (2_000, "Demo: winner of a raffle."),
    (-150, "Demo: paid twice."),
)


@dataclass(eq=False)
class Person:
    """A generated user, and the last postback about them."""

    profile_address: str
    caller: Caller | None = None
    last_postback: tuple[str, Reward] | None = None
    user: User = field(init=False)

    def join(self, staff: User, key: str) -> None:
        """Create the user; callers get credits."""
        self.user = user_of_profile(profile_address=self.profile_address)
        if self.caller is not None:
            reason = "Demo: credits to relay calls with."
            requests.adjust(owner=self.user, credits=_CALLER_CREDITS, key=key, staff=staff, reason=reason)


@dataclass
class Demo:
    """The history of a seed's users. `opened` has the secret and token of each ad network."""

    rng: random.Random
    people: list[Person]
    staff: User
    opened: dict[str, dict[str, Any]]
    _slugs: Iterator[str] = field(default_factory=lambda: cycle(_SLUGS))

    def run(self, *, until: datetime) -> None:
        """Create the history in steps, from weeks ago until now."""
        length = timedelta(days=_DAYS) / _STEPS
        for step in range(_STEPS):
            at = until - length * (_STEPS - step) + length * self.rng.random()
            with written_at(at):
                self._step(step, at)
        self._request_large_adjustments()
        seeds.commit_and_reveal(now=until)

    def _step(self, step: int, at: datetime) -> None:
        seeds.commit_and_reveal(now=at)
        earnings.release_due(now=at)
        first, last = (len(self.people) * place // _STEPS for place in (step, step + 1))
        for person in self.people[first:last]:
            person.join(self.staff, f"demo:{self._identifier()}")
        present = self.people[:last]
        active = [*self.people[first:last], *self.rng.sample(present, min(_ACTIVE, len(present)))]
        actions = self.rng.choices(list(_ACTIONS), weights=list(_ACTIONS.values()), k=len(active))
        for person, action in zip(active, actions, strict=True):
            getattr(self, f"_{action}")(person, at)
        if step == _STEPS - 1:
            self._earn_at(_HOLDING_SLUG, self.people[0], at)
            self._earn_at(_REVERSING_SLUG, self.people[1], at)
            self._reverse(self.people[1], at)
        if step in _RELAYING_STEPS:
            callers = {person.user: person.caller for person in present if person.caller is not None}
            overspender = _RELAYING_STEPS.index(step)
            relay_calls(callers, overspender=overspender, channel=2 * step, now=at)

    def _earn(self, person: Person, at: datetime) -> None:
        """Send a postback of an ad network, sometimes a reversal."""
        if person.last_postback is not None and self.rng.random() < 0.25:
            self._reverse(person, at)
        else:
            self._earn_at(next(self._slugs), person, at)

    def _reverse(self, person: Person, at: datetime) -> None:
        if person.last_postback is None:
            return
        slug, postback = person.last_postback
        person.last_postback = None
        self._post(slug, replace(postback, at=at, is_reversal=True), at)

    def _earn_at(self, slug: str, person: Person, at: datetime) -> None:
        network = AdNetwork.objects.get(slug=slug)
        postback = Reward(
            external_id=self._identifier(),
            user=networks.reference_of(user=person.user, network=network),
            amount=str(self.rng.randint(20, 400)),
            at=at,
        )
        self._post(slug, postback, at)
        person.last_postback = (slug, postback) if slug not in WITHOUT_REVERSALS else None

    def _post(self, slug: str, postback: Reward, at: datetime) -> None:
        token = self.opened[slug]["token"]
        url = networks.address_of(slug=slug, token=token).partition("?")[0].rstrip("/")
        sent = sign(slug, postback, url=url, secret=self.opened[slug]["secret"])
        request = RawRequest(
            method="GET",
            url=url,
            query=sent.query.encode(),
            headers={name.lower(): value for name, value in sent.headers.items()},
            path_token=sent.path_token or token,
            sender="127.0.0.1",
        )
        response = postbacks.receive(slug=slug, request=request, now=at)
        if response.status != 200:
            raise RuntimeError(f"a demo postback of {slug} was answered {response}")

    def _check_in(self, person: Person, at: datetime) -> None:
        with suppress(CheckInUnavailable):
            checkins.execute(user=person.user, now=at, idempotency_key=self._identifier())

    def _sign_in(self, person: Person, at: datetime) -> None:
        controller = person.caller.controller_address if person.caller else self._address()
        sessions.start(profile_address=person.profile_address, controller=controller, now=at)

    @transaction.atomic
    def _get_modifier(self, person: Person, _: datetime) -> None:
        modifiers.grant(
            user=person.user,
            modifier_type=self.rng.choice(list(ModifierType)),
            value=Decimal(self.rng.randint(2, 30)) / 100,
            minutes=self.rng.randint(1, 30) * 24 * 60,
            key=f"demo:{self._identifier()}",
            reason="Demo: a bonus for a bug report.",
            actor=self.staff,
        )

    def _be_corrected(self, person: Person, _: datetime) -> None:
        amount, reason = self.rng.choice(_CORRECTIONS)
        key = f"demo:{self._identifier()}"
        requests.adjust(owner=person.user, credits=amount, key=key, staff=self.staff, reason=reason)

    def _request_large_adjustments(self) -> None:
        """Create requests that wait for the approval of a second person."""
        colleague = User.objects.create_user("colleague", is_staff=True)
        colleague.groups.add(Group.objects.get(name="support"))
        for place, person in enumerate(self.people[:_LARGE_ADJUSTMENTS], 1):
            adjustments.request(
                user=person.user,
                credits=place * 10 * settings.APPROVAL_LIMITS["credits"]["actor"],
                key=f"demo:large:{person.profile_address}",
                actor=colleague,
                reason="Demo: an offer was never credited.",
            )

    def _identifier(self) -> str:
        return self.rng.randbytes(10).hex()

    def _address(self) -> str:
        return str(to_checksum_address(self.rng.randbytes(20)))


def generate_people(
    *,
    seed: str,
    people: int,
    callers: Sequence[Caller],
    staff: User,
    opened: dict[str, dict[str, Any]],
    now: datetime,
) -> bool:
    """Generate the users of a seed, once per database; `callers` are those who relay calls."""
    rng = random.Random(seed)  # noqa: S311 - nothing here is secret
    generated = [Person(address) for address in addresses_of(seed, people - len(callers))]
    everybody = [*(Person(caller.profile_address, caller) for caller in callers), *generated]
    if User.objects.filter(profile_address=everybody[-1].profile_address).exists():
        return False
    Demo(rng, everybody, staff, opened).run(until=now)
    return True


def addresses_of(seed: str, people: int) -> list[str]:
    """Return the profile addresses of a seed's users who relay no calls."""
    rng = random.Random(f"addresses {seed}")  # noqa: S311 - nothing here is secret
    return [str(to_checksum_address(rng.randbytes(20))) for _ in range(people)]
