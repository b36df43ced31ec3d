"""
Random histories over two chains, of which one is of the OP stack, beside a model in plain Python.

A history makes calls of own and sponsored credits on both chains, while prices of a credit and fees of L1 change, both
chains are reorganised, credits are paid, given and taken back. In the end the ledger must be that of the model and of
both final chains, and the months' tables must tie to what the relayers have lost, to the wei. `CHAIN_HISTORIES` sets
the number of histories, and `CHAIN_SEED` the first.
"""

import os
import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone
from eth_hash.auto import keccak
from pytest_django import Settings

from accounting import queries as months
from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import entries
from credits.services import reconciliation as ledger
from gateway.chain.client import set_chain_client
from gateway.chain.config import get_chain, home, on_chain
from gateway.chain.l1_fees import L1Prices
from gateway.chain.signing import get_signer, set_signer
from gateway.chain.types import Head, Receipt, SendOutcome
from gateway.common.errors import DomainError
from relay.models import OVERTAKEN, Attempt, CreditPrice, RelayTransaction, ReversedSettlement
from relay.queries.calls import next_relay_nonce
from relay.services.accepting import submission
from relay.services.accepting.calls import Caller
from relay.services.fleet import relayers
from relay.services.sending import broadcasting
from relay.services.sending.gaps import GapWatch
from relay.services.settling import reconciliation
from rewards.models import Badge
from sponsors.models import Sponsor, SponsoredCall
from sponsors.services.paying import SponsorChoice
from tests.factories import UserFactory
from tests.fakes.chain import FakeChain
from tests.fakes.pool import Transaction
from tests.fakes.profiles import Profile, set_data, sign_relay_call, transfer
from tests.fakes.state import Block
from tests.relay.sponsoring import account_of
from tests.relay.two_chains import ETHER, GWEI, settings_of
from tests.relay.workers import track
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.users.trusted import trust_code
from users.models import User

pytestmark = pytest.mark.django_db
_FIRST = int(os.environ.get("CHAIN_SEED", "0"))
_HISTORIES = range(_FIRST, _FIRST + int(os.environ.get("CHAIN_HISTORIES", "3")))
_STEPS, _DEEPEST, _FINAL_DEPTH = 120, 5, 30
_CREDITS, _FUNDS = 10**7, 10**7
_FIRST_PRICE_THERE = 10**12
_Status = RelayTransaction.Status


class OpChain(FakeChain):
    """A chain of the OP stack: it takes a fee for L1 from senders, at prices that change with its blocks."""

    def __init__(self, rng: random.Random, **world: Any) -> None:
        self.rng = rng
        self.l1 = L1Prices(
            base_fee_wei=rng.randint(5, 15) * GWEI,
            blob_base_fee_wei=rng.randint(1, GWEI),
            base_fee_scalar=rng.randint(10**4, 10**6),
            blob_base_fee_scalar=rng.randint(0, 10**6),
            operator_scalar=rng.randint(0, 10**6),
            operator_constant_wei=rng.randint(0, GWEI),
        )
        self.raws: dict[str, bytes] = {}
        super().__init__(**world)

    @property
    def _newest(self) -> Head:
        return replace(super()._newest, l1=self.l1)

    def _send(self, raw: bytes) -> SendOutcome:
        self.raws["0x" + keccak(raw).hex()] = raw
        return super()._send(raw)

    def _include(self, block: Block, transaction: Transaction) -> None:
        super()._include(block, transaction)
        name = transaction.transaction_hash
        receipt = block.receipts[name]
        fee_wei = self.l1.fee_wei(self.raws[name], gas_used=receipt.gas_used)
        block.receipts[name] = replace(receipt, extra_fee_wei=fee_wei)
        self._state.account(transaction.sender).balance_wei -= fee_wei

    def move_l1(self) -> None:
        """Change L1's prices by less or more than a hold foresees."""
        factor = self.rng.choice((50, 80, 120, 200, 2_000))
        base_fee = max(GWEI // 10, min(1_000 * GWEI, self.l1.base_fee_wei * factor // 100))
        self.l1 = replace(self.l1, base_fee_wei=base_fee)


@dataclass
class Side:
    """One of the chains, and what the model knows of it."""

    id: int
    chain: FakeChain
    credit_wei: int
    funded_wei: int = 100 * ETHER
    # The price at which each call was accepted, and whether the sponsor pays, by the hash first returned.
    accepted: dict[str, tuple[int, bool]] = field(default_factory=dict)

    def receipts(self) -> dict[str, Receipt]:
        """Return the receipts of the chain as it is now."""
        return {name: one for block in self.chain._blocks for name, one in block.receipts.items()}

    def spent_wei(self) -> int:
        """Return what the relayers have lost."""
        with on_chain(self.id):
            return sum(self.funded_wei - self.chain.balance_wei(one) for one in get_signer().addresses())


class History:
    """Two owners, one of whom has only credits that were given, and a sponsor who pays on both chains."""

    def __init__(self, rng: random.Random, sides: list[Side], owners: list[tuple[Profile, User]]) -> None:
        self.rng, self.sides, self.owners = rng, sides, owners
        self.sponsor: Sponsor = make_sponsor(_FUNDS)
        for side in sides:
            make_policy(self.sponsor, chain_id=side.id, call_credits=10**9)
        self.moved: Counter[int] = Counter()
        self.made: Counter[str] = Counter()
        self.gaps = {side.id: GapWatch() for side in sides}
        self.flaky = {side.id: side.chain.deploy_flaky() for side in sides}
        self.age = 0.0
        for side in sides:
            side.chain.mine(_FINAL_DEPTH)

    @property
    def now(self) -> datetime:
        return timezone.now() + timedelta(seconds=self.age)

    def play(self) -> None:
        """Make random moves, each on one of the chains."""
        moves: dict[Callable[[Side], object], int] = {
            self.call: 16,
            self.send: 6,
            self.mine: 6,
            self.track: 5,
            self.settle: 6,
            self.flip: 3,
            self.reorganise: 6,
            self.change_price: 3,
            self.move_l1: 3,
            self.move_credits: 2,
        }
        for _ in range(_STEPS):
            (move,) = self.rng.choices(list(moves), list(moves.values()))
            self.made[move.__name__] += 1
            side = self.rng.choice(self.sides)
            with on_chain(side.id):
                move(side)

    def call(self, side: Side) -> None:
        (profile, user), is_home = self.rng.choice(self.owners), side is self.sides[0]
        is_sponsored, channel = self.rng.random() < 0.4, self.rng.randrange(3)
        of_channel = {"key_manager": profile.key_manager_address, "controller": profile.controller.address}
        nonce = next_relay_nonce(
            chain_nonce=side.chain.read_relay_nonce(channel=channel, **of_channel) or 0, **of_channel
        )
        payload = transfer(self.flaky[side.id].address) if self.rng.random() < 0.4 else set_data()
        call = sign_relay_call(
            profile,
            payload,
            chain_id=side.id,
            relay_nonce=nonce + self.rng.choice((0, 0, 0, 0, 1)),
        )
        try:
            name = submission.execute(
                caller=Caller(user.pk, profile.profile_address),
                call=call,
                now=timezone.now(),
                sponsor=SponsorChoice(self.sponsor.slug) if is_sponsored else None,
            )
        except DomainError as refusal:
            self.made[refusal.code] += 1
        else:
            # Given credits are spent at home alone.
            assert is_home or is_sponsored or user is self.owners[0][1]
            self.made["sponsored" if is_sponsored else "own"] += 1
            # An equal call in progress is returned again, at its own price.
            side.accepted.setdefault(name, (side.credit_wei, is_sponsored))

    def send(self, side: Side) -> None:
        broadcasting.sweep(now=self.now)

    def mine(self, side: Side) -> None:
        side.chain.mine(self.rng.choice((1, 1, 2, 3)))

    def track(self, side: Side) -> None:
        track(now=self.now)
        self.gaps[side.id].fill(head=side.chain.head(), now=self.now)

    def settle(self, side: Side) -> None:
        self.send(side)
        side.chain.mine(get_chain().confirmations)
        self.track(side)

    def flip(self, side: Side) -> None:
        self.flaky[side.id].flip()

    def reorganise(self, side: Side) -> None:
        depth = self.rng.randint(1, _DEEPEST)
        if self.rng.random() < 0.5:
            side.chain.reorganise(depth)
        else:
            side.chain.take_back(depth)
            side.chain.mine(depth)

    def change_price(self, side: Side) -> None:
        side.credit_wei = max(10**9, side.credit_wei * self.rng.choice((50, 90, 130, 300)) // 100)
        CreditPrice.objects.create(chain_id=side.id, credit_wei=side.credit_wei)

    def move_l1(self, side: Side) -> None:
        for other in self.sides:
            if isinstance(other.chain, OpChain):
                other.chain.move_l1()

    def move_credits(self, side: Side) -> None:
        """Give credits, or take some back as after a refund."""
        user, key = self.rng.choice(self.owners)[1], secrets.token_hex(8)
        amount = self.rng.randint(1, 5_000)
        if self.rng.random() < 0.5:
            entries.grant(user=user, credits=amount, source=EntrySource.VIDEO_ADS, key=key)
            self.moved[user.pk] += amount
        else:
            entries.adjust(user=user, credits=-amount, key=key, actor=None, reason="a refund")
            self.moved[user.pk] -= amount

    def settle_everything(self) -> None:
        """Let both chains be quiet until every call has ended and is final."""
        for _ in range(40):
            self.age += 60
            for side in self.sides:
                with on_chain(side.id):
                    self.settle(side)
            if not RelayTransaction.objects.in_progress().exists():
                break
        assert not RelayTransaction.objects.in_progress().exists()
        for side in self.sides:
            with on_chain(side.id):
                side.chain.mine(_FINAL_DEPTH)
                self.track(side)


def cost_of(call: RelayTransaction, receipts: dict[str, Receipt], credit_wei: int) -> int:
    """Return what the call must have cost by the final chain, after comparing its status with it."""
    mined = [
        (attempt, receipts[attempt.transaction_hash])
        for attempt in call.attempts.all()
        if attempt.transaction_hash in receipts
    ]
    assert len(mined) <= 1
    if not mined or mined[0][0].kind == Attempt.Kind.CANCELLATION:
        assert call.status in {_Status.CANCELLED, _Status.EXPIRED}
        return 0
    receipt = mined[0][1]
    assert (call.status == _Status.SUCCESS) is receipt.succeeded
    if call.failure_code == OVERTAKEN:
        return 0
    wei = receipt.gas_used * receipt.effective_gas_price_wei + (receipt.extra_fee_wei or 0)
    return -(-wei // credit_wei)


@pytest.fixture
def rng(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture
def sides(rng: random.Random, settings: Settings) -> Iterator[list[Side]]:
    """Home, and a chain of the OP stack with the same trusted code; relayers have coins on both."""
    there = rng.randrange(10**6, 10**9)
    settings.FINALITY_BLOCKS = _FINAL_DEPTH
    settings.RELAY_LOSS_PER_HOUR_WEI = settings.RELAY_USER_LOSS_PER_HOUR_WEI = ETHER
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = settings.RELAY_CANCELLED_CALLS_PER_DAY = 1000
    settings.CHAINS = {
        there: settings_of(
            there,
            family="op-stack",
            finality_blocks=_FINAL_DEPTH,
            credit_wei=_FIRST_PRICE_THERE,
            spends_given_credits=False,
            loss_per_hour_wei=100 * ETHER,
            relayer_keys=settings.RELAY_RELAYER_KEYS,
        )
    }
    at_home, elsewhere = FakeChain(chain_id=settings.CHAIN_ID), OpChain(rng, chain_id=there)
    elsewhere.universal_profile, elsewhere.key_manager = at_home.universal_profile, at_home.key_manager
    elsewhere.codes = at_home.codes
    trust_code(profile=at_home.universal_profile, key_manager=at_home.key_manager)
    set_chain_client(at_home)
    set_chain_client(elsewhere, chain_id=there)
    both = [
        Side(home().id, at_home, settings.CREDIT_WEI),
        Side(there, elsewhere, _FIRST_PRICE_THERE),
    ]
    for side in both:
        with on_chain(side.id):
            side.chain.fund(side.funded_wei, *get_signer().addresses())
            relayers.sync(now=timezone.now())
    yield both
    set_chain_client(None)
    set_chain_client(None, chain_id=there)
    set_signer(None)


@pytest.fixture
def owners(sides: list[Side]) -> list[tuple[Profile, User]]:
    """An owner who has paid for credits, and one who was given them."""
    at_home, elsewhere = (side.chain for side in sides)
    pairs = []
    for source in (EntrySource.SUBSCRIBED_PAYOUT, EntrySource.VIDEO_ADS):
        profile = at_home.create_profile()
        elsewhere.create_copy(
            profile.profile_address,
            profile.key_manager_address,
            {profile.controller.address: profile.controller.permissions},
        )
        user = UserFactory.create(profile_address=profile.profile_address)
        entries.grant(user=user, credits=_CREDITS, source=source, key=secrets.token_hex(8))
        pairs.append((profile, user))
    Badge.objects.update(credits_back_percent=Decimal(0))
    return pairs


@pytest.mark.parametrize("seed", _HISTORIES)
def test_after_any_history_the_ledger_agrees_with_both_final_chains(
    seed: int, rng: random.Random, sides: list[Side], owners: list[tuple[Profile, User]]
) -> None:
    history = History(rng, sides, owners)
    history.play()
    history.settle_everything()

    paid, by_sponsor = Counter[int](), 0
    for side in sides:
        receipts = side.receipts()
        for call in RelayTransaction.objects.filter(chain_id=side.id).select_related("hold"):
            price, is_sponsored = side.accepted[call.attempts.get(sequence=0).transaction_hash]
            assert call.credit_wei == price
            hold = call.hold
            if is_sponsored:
                hold = SponsoredCall.objects.select_related("sponsor_hold").get(hold_id=hold.pk).sponsor_hold
            cost = min(cost_of(call, receipts, price), hold.amount)
            assert (hold.captured_amount or 0) == cost, (call.status, call.failure_code, history.made)
            by_sponsor += cost if is_sponsored else 0
            paid[call.user_id] += 0 if is_sponsored else cost
    for _, user in owners:
        balance = _CREDITS + history.moved[user.pk] - paid[user.pk]
        assert balance_of(user) == (balance, 0, balance)
    account = account_of(history.sponsor)
    assert (account.balance, account.open_holds) == (_FUNDS - by_sponsor, 0)
    assert ledger.find_differences() == []
    _assert_months_tie(sides)
    print(f"seed {seed}: {dict(history.made)}, {ReversedSettlement.objects.count()} undone")  # noqa: T201


def _assert_months_tie(sides: list[Side]) -> None:
    """The comparison with the nodes and the month's figures agree with what the relayers have lost, to the wei."""
    since, until = timezone.now() - timedelta(days=1), timezone.now() + timedelta(days=1)
    of_receipts = months.spent_by_relayers(since=since, until=until)
    of_calls = Counter[int]()
    for spent in months.spent_on_chains(since=since, until=until):
        of_calls[spent.chain_id] += spent.wei
    for side in sides:
        with on_chain(side.id):
            assert reconciliation.find_differences(since=since) == []
            found, compared = reconciliation.compare_with_nodes(since=since)
        assert (found, compared) == ([], RelayTransaction.objects.filter(chain_id=side.id).count())
        assert of_receipts.get(side.id, 0) == of_calls[side.id] == side.spent_wei()
