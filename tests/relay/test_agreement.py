"""
`prepare` and `execute` judge the same call alike, with a quote and without.

Random calls meet random clocks, fees, gas limits, balances, limits and policies. The suite tries some dozen pairs;
AGREEMENT_PAIRS=100000 tries more.
"""

import os
import random
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings
from eth_account import Account

from credits.queries import balance_of
from credits.services import entries
from devstack.world.permissions import ALL_PERMISSIONS, Permission
from devstack.world.profiles import ControllerPlan, Profile
from gateway.chain.client import set_chain_client
from gateway.common.errors import DomainError
from gateway.staff.pauses import is_paused, switch
from relay.models import RelayTransaction
from relay.queries.calls import RELAY
from relay.services.accepting import limits, preparation, submission
from relay.services.accepting.preparation import Draft, PreparedCall
from sponsors.services.paying import SponsorChoice
from tests.factories import random_address
from tests.relay.chain import GWEI, Chain
from tests.relay.conftest import Settle
from tests.relay.quoting import caller_of
from tests.relay.signing import execute_payload, set_data_payload, sign_digest, window
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db
PAIRS = int(os.environ.get("AGREEMENT_PAIRS", "40"))
# A call has no signature when it is prepared, so its gas is estimated from its parts, which is more than it needs.
# Close to a limit of gas or credits, `execute` may therefore accept what `prepare` refuses; never the reverse.
PLANS = (
    ControllerPlan(),
    ControllerPlan(ALL_PERMISSIONS & ~Permission.EXECUTE_RELAY_CALL),
    ControllerPlan(Permission.SIGN | Permission.EXECUTE_RELAY_CALL),
)


@dataclass
class Scene:
    """A service in which everything that decides about a call changes from pair to pair."""

    user: User
    profile: Profile
    chain: Chain
    monkeypatch: pytest.MonkeyPatch

    def change(self) -> None:
        """Choose prices, limits and balances anew."""
        self.chain.set_base_fee(_mostly(random.randint(GWEI // 2, 2 * GWEI), 8 * GWEI, 30 * GWEI))
        # The price of the pair before was read from another block.
        set_chain_client(None)
        self.monkeypatch.setattr(
            settings, "RELAY_MAX_GAS", _mostly(3_000_000, random.randint(90_000, 300_000))
        )
        self.monkeypatch.setattr(
            settings, "RELAY_CANCELLED_CALLS_PER_HOUR", _mostly(20, random.randint(1, 6))
        )
        self.monkeypatch.setattr(settings, "RELAY_MAX_FOLLOWERS", _mostly(8, 1))
        available, wanted = (
            balance_of(self.user).available,
            _mostly(10_000, 0, random.randint(1, 500)),
        )
        if available != wanted:
            key = secrets.token_hex(8)
            entries.adjust(user=self.user, credits=wanted - available, key=key, actor=None, reason="random")
        if is_paused(RELAY) != _mostly(False, True, False):
            switch(RELAY, is_paused=not is_paused(RELAY), actor=self.user, reason="at random")

    def draft(self, now: int) -> tuple[Draft, str]:
        """Return a random call, and the private key of its controller."""
        one = _mostly(self.profile.controller, *self.profile.controllers, None)
        key = "0x" + secrets.token_hex(32) if one is None else one.private_key
        payload = _mostly(
            set_data_payload(secrets.token_bytes(random.randint(0, 500))),
            execute_payload(random_address(), random.choice([1, 10**30])),
        )
        # Around the moments at which a window begins and ends for the next block, and far from them.
        start = _mostly(0, now + random.randint(-30, 30), now + random.randint(-30, 30), now + 10**6)
        end = _mostly(now + 3600, 0, now + random.randint(-5, 60), now - 10**6)
        draft = Draft(
            payload,
            random.choice([0, 1, random.randint(2, 2**128 - 1)]),
            window(start, end),
            controller=Account.from_key(key).address,
            wants_quote=random.choice([True, False]),
            sponsor=_sponsor(),
        )
        return draft, key


def _mostly(usual: Any, *others: Any) -> Any:
    """Return the usual value three times in four."""
    return usual if random.randrange(4) else random.choice(others)


def _sponsor() -> SponsorChoice | None:
    """Return a random sponsor who may not pay for everything."""
    if random.random() < 0.6:
        return None
    sponsor = make_sponsor(random.choice([0, random.randint(1, 300), 100_000]))
    for position in range(random.randint(0, 2)):
        make_policy(
            sponsor,
            position=position,
            call_credits=random.choice([random.randint(1, 300), 10_000]),
            user_day_credits=random.choice([None, random.randint(1, 300)]),
            share_percent=random.choice([100, random.randint(1, 99)]),
            gas_price_ceiling_wei=random.choice([None, random.randint(1, 20) * GWEI]),
        )
    return SponsorChoice(sponsor.slug, user_may_pay=random.random() < 0.5)


def _execute(user: User, prepared: PreparedCall, key: str, draft: Draft, now: datetime) -> str | None:
    """Sign what was prepared and hand it in, with its quote if there is one; return the code of the refusal."""
    signature = sign_digest(key, bytes.fromhex(prepared.identity.digest[2:]))
    try:
        submission.execute(
            caller=caller_of(user),
            call=replace(prepared.call, signature=signature),
            now=now,
            quote_id=None if prepared.quote is None else prepared.quote.pk,
            sponsor=draft.sponsor,
        )
    except DomainError as refusal:
        return refusal.code
    return None


@pytest.mark.timeout(max(900, 2 * PAIRS))
def test_what_is_prepared_is_executed_and_what_is_refused_has_one_of_the_reasons_that_were_given(
    open_account: Callable[..., User],
    create_profile: Callable[..., Profile],
    chain: Chain,
    settle: Settle,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profile = create_profile(*PLANS)
    scene = Scene(open_account(profile), profile, chain, monkeypatch)
    outcomes: Counter[str] = Counter()
    for number in range(PAIRS):
        # How often a process was asked in vain is counted over seconds.
        monkeypatch.setattr(submission, "refused_calls", limits.RefusedCalls())
        scene.change()
        moment = chain.time() + random.randint(-10, 20)
        now = datetime.fromtimestamp(moment, UTC)
        draft, key = scene.draft(moment)
        prepared = preparation.prepare(caller=caller_of(scene.user), draft=draft, now=now)
        reasons = {refusal.code: refusal.status for refusal in prepared.refusals}
        before = RelayTransaction.objects.count()

        refusal = _execute(scene.user, prepared, key, draft, now)

        told = (draft, prepared.refusals, refusal, moment - chain.time())
        assert RelayTransaction.objects.count() - before == (refusal is None), told
        if refusal in (reasons or {None}):
            outcomes[refusal or f"accepted, quote {prepared.quote is not None}"] += 1
        else:
            assert reasons, told
            assert all(status == 402 or code == "gas-limit-exceeded" for code, status in reasons.items()), (
                told
            )
            row = None if refusal else RelayTransaction.objects.latest("pk")
            assert row is None or prepared.gas_limit is None or row.gas_limit < prepared.gas_limit, told
            outcomes["refused for the gas of its parts"] += 1
        if number % 5 == 4:
            settle()
    print(PAIRS, "pairs:", dict(outcomes.most_common()))  # noqa: T201
