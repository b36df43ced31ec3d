"""
Random histories with reorganisations on a real node: in the end the books match the final chain.

A history makes calls, sends, mines, settles, replaces, cancels and repeats, while blocks are reorganised 1 to 6 deep:
their transactions are included again, in another order, or gone. `REORG_HISTORIES` sets how many are played, and
`REORG_SEED` with which the first begins.
"""

import os
import random
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.db.models import Sum
from django.utils import timezone
from eth_account import Account

from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import reconciliation as ledger
from devstack.rpc import RpcFailed
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from devstack.world.test_contracts import Flaky
from gateway.chain.client import get_chain_client
from gateway.chain.lsp25 import RelayCall
from gateway.common.errors import DomainError
from relay.models import OVERTAKEN, Attempt, Relayer, RelayTransaction, ReversedSettlement
from relay.services.sending import broadcasting, cancellation, replacement
from relay.services.sending.gaps import GapWatch
from relay.services.settling import reconciliation
from rewards.models import Badge, ExperienceEntry
from tests.credits.causes import causeless
from tests.relay.callers import execute
from tests.relay.chain import Chain
from tests.relay.conftest import LYX
from tests.relay.signing import execute_payload, set_data_payload, sign_call
from tests.relay.workers import bumped_fees, track
from users.models import User

pytestmark = pytest.mark.django_db
_FIRST = int(os.environ.get("REORG_SEED", "0"))
_HISTORIES = range(_FIRST, _FIRST + int(os.environ.get("REORG_HISTORIES", "2")))
_CREDITS = 10**7
_STEPS = 60
_DEEPEST = 6
_FINAL_DEPTH = 30
_Status = RelayTransaction.Status


class History:
    """Two profiles, a target that fails now and then, and a chain that changes its mind."""

    def __init__(
        self, *, seed: int, services: Services, chain: Chain, owners: Sequence[tuple[Profile, User]]
    ) -> None:
        self.rng = random.Random(seed)
        self.services, self.chain, self.owners = services, chain, owners
        self.flaky: Flaky = services.world.deploy_flaky()
        self.calls: list[tuple[User, RelayCall]] = []
        self.gaps = GapWatch()
        self.age = 0.0
        self.snapshot: tuple[str, int] | None = None
        self.made: Counter[str] = Counter()
        # Blocks older than any reorganisation stay.
        chain.mine(_FINAL_DEPTH)

    @property
    def now(self) -> datetime:
        return timezone.now() + timedelta(seconds=self.age)

    def play(self) -> None:
        """Make random moves, most often the ordinary ones."""
        moves: list[tuple[Callable[[], object], int]] = [
            (self.call, 14),
            (self.send, 6),
            (self.mine, 6),
            (self.track, 5),
            (self.settle, 6),
            (self.repeat, 4),
            (self.flip, 3),
            (self.replace, 2),
            (self.cancel, 2),
            (self.drop, 1),
            (self.execute_externally, 1),
            (self.use_key_elsewhere, 1),
            (self.reorganise, 7),
            (self.go_back, 1),
        ]
        functions, weights = zip(*moves, strict=True)
        for _ in range(_STEPS):
            (move,) = self.rng.choices(functions, weights)
            self.made[move.__name__] += 1
            move()

    def call(self) -> None:
        profile, user = self.rng.choice(self.owners)
        fails = self.rng.random() < 0.4
        payload = execute_payload(self.flaky.address) if fails else set_data_payload()
        self._accept(user, sign_call(services=self.services, profile=profile, payload=payload,
                                     channel=self.rng.randrange(3), ahead=self.rng.choice((0, 0, 0, 1))))  # fmt: skip

    def repeat(self) -> None:
        if self.calls:
            self._accept(*self.rng.choice(self.calls))

    def _accept(self, user: User, call: RelayCall) -> None:
        try:
            execute(user=user, call=call, now=timezone.now())
        except DomainError as refusal:
            self.made[refusal.code] += 1
        else:
            self.calls.append((user, call))

    def send(self) -> None:
        broadcasting.sweep(now=self.now)

    def mine(self) -> None:
        self.chain.mine(self.rng.choice((1, 1, 1, 2, 3)))

    def track(self) -> None:
        track(now=self.now)
        # Staff know who used the key.
        Relayer.objects.update(is_active=True, quarantined_at=None)
        self.gaps.fill(head=get_chain_client().head(), now=self.now)

    def settle(self) -> None:
        self.send()
        self.chain.mine(settings.CONFIRMATIONS)
        self.track()

    def flip(self) -> None:
        self.flaky.flip()

    def replace(self) -> None:
        sent = list(Attempt.objects.in_progress().filter(status="sent"))
        if sent:
            attempt = self.rng.choice(sent)
            replacement.replace(attempt_id=attempt.pk, fees=bumped_fees(attempt), now=self.now)

    def cancel(self) -> None:
        waiting = list(Attempt.objects.in_progress().filter(status__in=("signed", "sent"), kind="call"))
        if waiting:
            attempt = self.rng.choice(waiting)
            cancellation.begin(
                attempt=attempt,
                terminal_status=self.rng.choice((_Status.CANCELLED, _Status.EXPIRED)),
                code="refused-by-node",
                detail="",
                fees=bumped_fees(attempt),
                now=self.now,
            )

    def drop(self) -> None:
        sent = list(Attempt.objects.in_progress().filter(status="sent"))
        if sent:
            self.chain.drop(self.rng.choice(sent).transaction_hash)

    def execute_externally(self) -> None:
        if self.calls and self.rng.random() < 0.5:
            _, call = self.rng.choice(self.calls)
            try:
                self.chain.execute_externally(call)
            except Exception:  # noqa: BLE001 - it is not due, or was executed already
                self.made["no external execution"] += 1

    def use_key_elsewhere(self) -> None:
        """Take an account nonce for something else: the next one, or one that has an attempt in flight."""
        keys = {Account.from_key(key).address: key for key in settings.RELAY_RELAYER_KEYS}
        relayer = self.rng.choice(Relayer.objects.order_by("pk"))
        mined = self.chain.account_nonce(relayer.address)
        nonce = self.rng.randint(mined, max(mined, relayer.next_account_nonce))
        try:
            self.chain.use_key_elsewhere(keys[relayer.address], account_nonce=nonce)
        except RpcFailed:
            self.made["no foreign transaction"] += 1

    def reorganise(self) -> None:
        """Replace blocks; what they held is gone, comes back in them in some order, or is sent again later."""
        depth = self.rng.randint(1, _DEEPEST)
        # The node forgets a snapshot whose block is removed.
        self.snapshot = None
        removed = self._raws_of_newest(depth)
        fate = self.rng.choice(("gone", "again", "shuffled", "later"))
        self.made[fate] += 1
        if fate == "shuffled":
            self.rng.shuffle(removed)
            # One account's transactions keep their order.
            removed.sort(key=lambda pair: pair[0])
        blocks: list[list[bytes]] = [[] for _ in range(depth)]
        if fate in {"again", "shuffled"}:
            for _, raw in removed:
                blocks[self.rng.randrange(depth) if fate == "again" else 0].append(raw)
        try:
            self.chain.reorganise(depth, *blocks)
        except RpcFailed:
            # They do not fit into that order.
            self.chain.reorganise(depth)
        if fate == "later":
            get_chain_client().send_raw_transactions([raw for _, raw in removed])

    def _raws_of_newest(self, depth: int) -> list[tuple[int, bytes]]:
        """Return the account nonces and the raw transactions of ours in the newest blocks, in their order."""
        newest = get_chain_client().head().number
        hashes = [
            name
            for height in range(newest - depth + 1, newest + 1)
            for name in self.services.rpc.call("eth_getBlockByNumber", hex(height), False)["transactions"]
        ]
        rows = {row.transaction_hash: row for row in Attempt.objects.filter(transaction_hash__in=hashes)}
        return [(rows[name].account_nonce, bytes(rows[name].raw)) for name in hashes if name in rows]

    def go_back(self) -> None:
        """Remember the chain, or return to what was remembered if that is not long ago."""
        height = get_chain_client().head().number
        if self.snapshot is None or height - self.snapshot[1] > _DEEPEST:
            self.snapshot = self.chain.snapshot(), height
            return
        self.chain.revert(self.snapshot[0])
        self.chain.mine(height - self.snapshot[1] + self.rng.randrange(2))
        self.snapshot = None

    def settle_everything(self) -> None:
        """Let the chain be quiet until every call has ended and is final."""
        for _ in range(40):
            self.age += 60
            self.send()
            self.chain.mine(settings.CONFIRMATIONS)
            self.track()
            if not RelayTransaction.objects.in_progress().exists():
                break
        assert not RelayTransaction.objects.in_progress().exists()
        self.chain.mine(_FINAL_DEPTH)
        self.age += 60
        self.track()


def receipt_of(chain: Chain, call: RelayTransaction) -> tuple[Attempt, dict[str, Any]] | None:
    """Return the attempt of a call that the chain has, with its receipt; None where it has none."""
    mined = [
        (attempt, receipt)
        for attempt in call.attempts.all()
        if (receipt := chain.receipt(attempt.transaction_hash)) is not None
    ]
    assert len(mined) <= 1
    return mined[0] if mined else None


def expected_cost(chain: Chain, call: RelayTransaction) -> int:
    """Return what the call must have cost by its receipt, after comparing its status with it."""
    mined = receipt_of(chain, call)
    if mined is None:
        assert (call.status, call.failure_code) == (_Status.CANCELLED, "account-nonce-lost")
        return 0
    attempt, receipt = mined
    succeeded = int(receipt["status"], 16) == 1
    if attempt.kind == Attempt.Kind.CANCELLATION:
        assert call.status in {_Status.CANCELLED, _Status.EXPIRED}
        return 0
    assert (call.status == _Status.SUCCESS) is succeeded
    assert succeeded or call.status in {_Status.FAILED, _Status.EXECUTED_EXTERNALLY}
    if call.failure_code == OVERTAKEN:
        earlier = RelayTransaction.objects.filter(relay_nonce=call.relay_nonce, is_superseded=True)
        assert earlier.filter(
            controller_address=call.controller_address, status=_Status.SUCCESS, pk__lt=call.pk
        ).exists()
        return 0
    wei = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    return min(-(-wei // settings.CREDIT_WEI), call.hold.amount)


@pytest.fixture
def owners(
    create_profile: Callable[..., Profile], open_account: Callable[..., User]
) -> list[tuple[Profile, User]]:
    """Two profiles of their own for each history; successes return a tenth."""
    profiles = [create_profile() for _ in range(2)]
    pairs = [(profile, open_account(profile, _CREDITS)) for profile in profiles]
    Badge.objects.update(credits_back_percent=Decimal("0.1"), exp_growth_rate=1)
    return pairs


@pytest.mark.parametrize("seed", _HISTORIES)
def test_after_any_history_the_ledger_agrees_with_the_final_chain(
    seed: int,
    services: Services,
    chain: Chain,
    relayers: list[Relayer],
    owners: list[tuple[Profile, User]],
    settings: Any,
) -> None:
    settings.FINALITY_BLOCKS = _FINAL_DEPTH
    settings.RELAY_LOSS_PER_HOUR_WEI = settings.RELAY_USER_LOSS_PER_HOUR_WEI = LYX
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = settings.RELAY_CANCELLED_CALLS_PER_DAY = 1000
    history = History(seed=seed, services=services, chain=chain, owners=owners)
    history.play()
    history.settle_everything()

    executed: Counter[tuple[str, str, int]] = Counter()
    for _, user in owners:
        paid, gained = 0, 0
        for call in RelayTransaction.objects.filter(user=user).select_related("hold"):
            cost = expected_cost(chain, call)
            captured = call.hold.captured_amount or 0
            assert captured == cost, (call.status, call.failure_code, history.made)
            paid += cost
            if call.status == _Status.SUCCESS:
                gained += cost
                executed[call.key_manager_address, call.controller_address, call.relay_nonce] += 1
        # Fractions of a credit add up, also over what was undone and settled anew.
        balance = _CREDITS - paid + gained // 10
        assert balance_of(user) == (balance, 0, balance)
        grown = ExperienceEntry.objects.filter(
            progress__user=user, cause__in=[EntrySource.RELAY_TRANSACTION, EntrySource.RELAY_REVERSAL]
        )
        assert (grown.aggregate(total=Sum("amount"))["total"] or 0) == gained
    assert all(times == 1 for times in executed.values())
    assert ledger.find_differences() == []
    assert (
        causeless(EntrySource.RELAY_TRANSACTION, EntrySource.RELAY_REVERSAL, EntrySource.CREDITS_BACK) == []
    )
    since = timezone.now() - timedelta(days=1)
    assert reconciliation.find_differences(since=since) == []
    differences, compared = reconciliation.compare_with_nodes(since=since)
    assert (differences, compared) == ([], RelayTransaction.objects.count())
    goes_on(services, chain, owners, history)
    print(f"seed {seed}: {dict(history.made)}, {ReversedSettlement.objects.count()} undone")  # noqa: T201


def goes_on(
    services: Services, chain: Chain, owners: Sequence[tuple[Profile, User]], history: History
) -> None:
    """Every relayer carries another call."""
    profile, user = owners[0]
    for relayer in Relayer.objects.order_by("pk"):
        Relayer.objects.update(is_active=False)
        Relayer.objects.filter(pk=relayer.pk).update(is_active=True)
        call = sign_call(services=services, profile=profile, channel=secrets.randbits(100))
        name = execute(user=user, call=call, now=timezone.now())
        history.send()
        chain.mine(settings.CONFIRMATIONS)
        history.track()
        row = RelayTransaction.objects.get(transaction_hash=name)
        assert (row.relayer_id, row.status) == (relayer.pk, _Status.SUCCESS)
