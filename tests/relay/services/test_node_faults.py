"""
A node does something wrong: what it alone refuses is not refused, and a call ends as on the chain, at its cost.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.utils import timezone

from credits.models import CreditEntry
from credits.services.reconciliation import find_differences as ledger_differences
from devstack.services.stack import Services
from devstack.world.profiles import Profile, ProfilePlan
from gateway.chain.client import JsonRpcChainClient, set_chain_client
from gateway.chain.errors import NodeUnavailable
from gateway.chain.node import Node
from gateway.chain.nodes import NodeLimits
from gateway.chain.rpc import Call
from gateway.chain.signatures import personal_sign_digest, quota_digests
from gateway.common.errors import DomainError
from lab.chaos import node_faults
from lab.chaos.http_proxy import NodeProxy, Rule
from lab.chaos.node_faults import changed, refusing
from lab.chaos.proxies import Loop, tcp
from relay.errors import KeyManagerNotFound
from relay.models import Relayer, RelayTransaction
from relay.pricing import credits_of
from relay.services.accepting.calls import Caller
from relay.services.accepting.quota import signed_quota
from relay.services.sending import broadcasting
from relay.services.settling.reconciliation import find_differences
from tests.relay.callers import execute
from tests.relay.chain import Chain
from tests.relay.conftest import Accept, Settle
from tests.relay.quoting import prepare
from tests.relay.signing import sign_call, sign_digest
from tests.relay.workers import later, track
from users.models import User
from users.services import controllers

pytestmark = pytest.mark.django_db
# Of a node that responds, however busy the machine is.
_PATIENCE_SECONDS = 60.0


class Nodes:
    """Proxies in front of the node, and the service's client over them."""

    def __init__(self, services: Services, loop: Loop, count: int, *, hang: bool) -> None:
        port = urlsplit(services.rpc_url).port or 0
        self.proxies = [NodeProxy(loop, tcp(lambda: port)) for _ in range(count)]
        self.client = JsonRpcChainClient(
            [f"http://127.0.0.1:{proxy.port}" for proxy in self.proxies],
            # One that hangs is not waited for.
            timeout_seconds=1 if hang else _PATIENCE_SECONDS,
            check_seconds=0.5 if hang else _PATIENCE_SECONDS,
            limits=NodeLimits(services.chain_id, max_lag_blocks=5),
        )
        self._seconds = 0

    def tick(self, chain: Chain, times: int = 1) -> None:
        """Check the nodes, send, mine and track, as the worker does block after block; an outage waits."""
        for _ in range(times):
            self.client.node_checks().check()
            # What was sent is overdue each time, and sent again.
            self._seconds += settings.RELAY_RESEND_SECONDS + 1
            with suppress(NodeUnavailable):
                broadcasting.sweep(now=later(self._seconds))
            chain.mine()
            self.client.node_checks().check()
            with suppress(NodeUnavailable):
                track()

    def heal(self) -> None:
        """End every fault; the checks find that out, and from now on each node gets the time that it needs."""
        for proxy in self.proxies:
            proxy.rule = None
            proxy.heal()
        for node in self.client.pool:
            node.timeout_seconds = node.check_seconds = _PATIENCE_SECONDS
        for _ in range(2):
            self.client.node_checks().check()


@pytest.fixture(scope="module")
def loop(services: Services) -> Iterator[Loop]:
    """The event loop of the proxies, in front of a chain that is long enough to be 50 blocks behind."""
    Chain(services).mine(60)
    loop = Loop()
    yield loop
    loop.do(asyncio.sleep(0.1))
    loop.stop()


@pytest.fixture
def make(services: Services, chain: Chain, loop: Loop) -> Iterator[Callable[..., Nodes]]:
    """Return a function that puts several nodes in place of the one."""
    made: list[Nodes] = []

    def run(count: int, fault: str = "") -> Nodes:
        made.append(Nodes(services, loop, count, hang=fault == "hung"))
        set_chain_client(made[-1].client)
        return made[-1]

    yield run
    set_chain_client(None)
    for proxy in (proxy for nodes in made for proxy in nodes.proxies):
        proxy.heal()
        proxy.cut()


def _cut(nodes: Nodes) -> None:
    nodes.proxies[0].cut()


def _hang(nodes: Nodes) -> None:
    nodes.proxies[0].hang()


def _does(rule: Callable[[], Rule]) -> Callable[[Nodes], None]:
    def cause(nodes: Nodes) -> None:
        nodes.proxies[0].rule = rule()

    return cause


def _refuses(message: str, *, once: bool = False) -> Callable[[Nodes], None]:
    return _does(lambda: refusing(message, once=once))


# What one node may do without any call ending differently from what the chain did.
SURVIVED: dict[str, Callable[[Nodes], None]] = {
    "cut": _cut,
    "hung": _hang,
    "cut before acceptance": _does(lambda: node_faults.cut_before_sending),
    "cut after acceptance": _does(lambda: node_faults.cut_after_sending),
    "429": _does(lambda: node_faults.too_many_requests),
    "wrong chain id": _does(lambda: changed(node_faults.wrong_chain_id)),
    "50 blocks behind": _does(lambda: node_faults.behind),
    "account nonce too low": _does(lambda: changed(node_faults.moved_nonces(-5))),
    "account nonce too high": _does(lambda: changed(node_faults.moved_nonces(5))),
    "already known": _does(lambda: changed(node_faults.already_known)),
    "underpriced once": _refuses("transaction underpriced", once=True),
    "nonce too low": _refuses("nonce too low"),
    "pool is full": _refuses("txpool is full"),
    "lost broadcast": _does(lambda: node_faults.lost_broadcast),
}
# Faults that cannot be detected where there is only one node.
UNDETECTABLE: dict[str, tuple[Callable[[Nodes], None], str]] = {
    "receipt of a revert": (_does(lambda: changed(node_faults.reverted_receipts)), "Failed"),
    "receipt of twice the gas": (_does(lambda: changed(node_faults.costly_receipts)), "Success"),
    "refused": (_refuses("insufficient funds for gas * price + value"), "Cancelled"),
}
EVERY = {**SURVIVED, **{name: cause for name, (cause, _) in UNDETECTABLE.items()}}


def _assert_true_to_chain(row: RelayTransaction, chain: Chain) -> None:
    """The call was executed once, and was charged its receipt's cost."""
    row.refresh_from_db()
    receipts = [
        receipt for attempt in row.attempts.all() if (receipt := chain.receipt(attempt.transaction_hash))
    ]
    [receipt] = receipts
    cost_wei = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    cost = credits_of(cost_wei, credit_wei=settings.CREDIT_WEI)
    assert (row.status, row.transaction_hash) == ("Success", receipt["transactionHash"])
    assert (row.real_cost, row.hold.captured_amount) == (cost, cost)
    assert CreditEntry.objects.filter(source="RELAY_TRANSACTION").count() == 1
    assert ledger_differences() == []
    assert find_differences(since=later(-3600)) == []


# Faults whose outcome two nodes share are left to them: one of them takes the bytes.
@pytest.mark.parametrize(
    "fault", sorted(set(SURVIVED) - {"429", "already known", "cut before acceptance", "pool is full"})
)
def test_with_one_node_the_call_follows_the_chain_after_the_fault(
    accept: Accept, chain: Chain, make: Callable[..., Nodes], fault: str
) -> None:
    nodes = make(1, fault)
    row = accept()
    SURVIVED[fault](nodes)
    nodes.tick(chain, 3)
    row.refresh_from_db()
    assert row.status in {"Pending", "Submitted", "Success"}
    nodes.heal()
    nodes.tick(chain, settings.CONFIRMATIONS + 1)
    _assert_true_to_chain(row, chain)


@pytest.mark.parametrize("fault", UNDETECTABLE)
def test_a_single_node_is_trusted(
    accept: Accept, chain: Chain, make: Callable[..., Nodes], fault: str
) -> None:
    """As in the table of docs/reliability.md: the loss is bounded by the hold."""
    nodes = make(1, fault)
    row = accept()
    cause, status = UNDETECTABLE[fault]
    cause(nodes)
    nodes.tick(chain, 3)
    nodes.heal()
    nodes.tick(chain, settings.CONFIRMATIONS + 1)
    row.refresh_from_db()
    assert row.status == status
    assert (row.hold.captured_amount or 0) <= row.hold.amount
    assert ledger_differences() == []


@pytest.mark.parametrize("fault", sorted(set(EVERY) - {"cut after acceptance", "underpriced once"}))
def test_with_two_nodes_no_fault_of_one_ends_a_call_differently(
    accept: Accept, chain: Chain, make: Callable[..., Nodes], fault: str
) -> None:
    nodes = make(2, fault)
    row = accept()
    next_nonces = dict(Relayer.objects.values_list("pk", "next_account_nonce"))
    EVERY[fault](nodes)
    nodes.tick(chain, 3)
    # The other node has taken it, so the chain has it already; the settlement is correct.
    assert chain.receipt(row.transaction_hash) is not None
    row.refresh_from_db()
    assert row.status in {"Submitted", "Success"}
    assert row.attempts.count() == 1
    assert dict(Relayer.objects.values_list("pk", "next_account_nonce")) == next_nonces
    assert not Relayer.objects.filter(quarantined_at__isnull=False).exists()
    nodes.heal()
    nodes.tick(chain, settings.CONFIRMATIONS + 1)
    _assert_true_to_chain(row, chain)


def test_of_three_nodes_one_that_lies_is_outvoted(
    accept: Accept, chain: Chain, make: Callable[..., Nodes]
) -> None:
    nodes = make(3)
    row = accept()
    EVERY["receipt of twice the gas"](nodes)
    nodes.tick(chain, settings.CONFIRMATIONS)
    _assert_true_to_chain(row, chain)


@pytest.mark.parametrize("fault", ["429", "wrong chain id", "50 blocks behind"])
def test_with_one_of_two_nodes_unfit_calls_are_accepted_and_sent_and_settlement_waits(
    accept: Accept, chain: Chain, make: Callable[..., Nodes], fault: str
) -> None:
    nodes = make(2, fault)
    EVERY[fault](nodes)
    for _ in range(3):
        nodes.client.node_checks().check()
    row = accept()
    nodes.tick(chain, 4)
    row.refresh_from_db()
    assert (row.status, row.settled_at) == ("Submitted", None)
    assert chain.receipt(row.transaction_hash) is not None
    with pytest.raises(NodeUnavailable, match="2 must agree"):
        track(now=timezone.now())
    nodes.heal()
    nodes.tick(chain)
    _assert_true_to_chain(row, chain)


def _odd_receipt(transaction_hash: str, **members: object) -> Rule:
    """Report other members in one receipt; None leaves a member out."""

    def change(call: node_faults.Response, answered: node_faults.Response) -> node_faults.Response:
        if call["method"] != "eth_getTransactionReceipt" or call["params"] != [transaction_hash]:
            return answered
        receipt = {**(answered.get("result") or {}), **members}
        return {**answered, "result": {name: value for name, value in receipt.items() if value is not ...}}

    return changed(change)


def test_an_odd_receipt_delays_its_own_call_only(
    accept: Accept, chain: Chain, make: Callable[..., Nodes]
) -> None:
    nodes = make(1)
    odd, *others = [accept(channel=channel) for channel in (1, 2, 3)]
    nodes.proxies[0].rule = _odd_receipt(odd.transaction_hash, status=...)
    nodes.tick(chain, settings.CONFIRMATIONS + 1)
    statuses = dict(RelayTransaction.objects.values_list("pk", "status"))
    assert statuses == {odd.pk: "Submitted", **{other.pk: "Success" for other in others}}
    assert not odd.attempts.exclude(gas_used=None).exists()
    nodes.heal()
    nodes.tick(chain)
    odd.refresh_from_db()
    assert odd.status == "Success"
    assert ledger_differences() == []
    assert find_differences(since=later(-3600)) == []


def test_a_wrong_receipt_in_passing_leaves_no_trace(
    accept: Accept, chain: Chain, make: Callable[..., Nodes]
) -> None:
    nodes = make(1)
    row = accept()
    nodes.proxies[0].rule = _odd_receipt(row.transaction_hash, gasUsed="0x1", effectiveGasPrice="0x2")
    with suppress(NodeUnavailable):
        broadcasting.sweep(now=later(60))
    chain.mine()
    track()
    assert row.attempts.get().gas_used == 1
    nodes.heal()
    nodes.tick(chain, settings.CONFIRMATIONS)
    _assert_true_to_chain(row, chain)
    receipt = chain.receipt(row.transaction_hash)
    assert receipt is not None
    assert row.attempts.get().gas_used == int(receipt["gasUsed"], 16)


def _instead(response: Mapping[str, object], *methods: str) -> Rule:
    """Respond so to these methods."""

    def change(call: node_faults.Response, answered: node_faults.Response) -> node_faults.Response:
        return {"jsonrpc": "2.0", "id": call["id"], **response} if call["method"] in methods else answered

    return changed(change)


_REVERT = {"error": {"code": 3, "message": "execution reverted", "data": "0x" + "ab" * 4 + "c"}}
REFUSING_ALONE: dict[str, Callable[[], Rule]] = {
    "returns no bytes": lambda: _instead({"result": "0x"}, "eth_call"),
    "has no code": lambda: _instead({"result": "0x"}, "eth_call", "eth_getCode"),
    "reverts": lambda: _instead(_REVERT, "eth_call", "eth_estimateGas", "eth_simulateV1"),
    "reverts only executions": lambda: _instead(_REVERT, "eth_estimateGas", "eth_simulateV1"),
}


def _execute(user: User, profile: Profile, services: Services) -> None:
    execute(user=user, call=sign_call(services=services, profile=profile), now=timezone.now())


def _prepare(user: User, profile: Profile, services: Services) -> None:
    prepared = prepare(user, profile, channel=1)
    for refusal in prepared.refusals:
        raise refusal
    assert prepared.quote is not None


def _ask_for_a_challenge(user: User, profile: Profile, services: Services) -> None:
    stranger = services.world.create_profiles(ProfilePlan())[0]
    controllers.require_profile_code(profile_address=stranger.profile_address)


def _sign_in(user: User, profile: Profile, services: Services) -> None:
    message = secrets.token_hex(8)
    signature = sign_digest(profile.controller.private_key, personal_sign_digest(message.encode()))
    controllers.recover_controller(
        profile_address=profile.profile_address, message=message, signature=signature
    )


def _refresh(user: User, profile: Profile, services: Services) -> None:
    controller = profile.controller.address
    assert controllers.may_sign(profile_address=profile.profile_address, controller=controller)


def _read_quota(user: User, profile: Profile, services: Services) -> None:
    timestamp = int(timezone.now().timestamp())
    digest = quota_digests(address=profile.profile_address, timestamp=timestamp)[0]
    signature = sign_digest(profile.controller.private_key, digest)
    caller = Caller(user.pk, profile.profile_address)
    signed_quota(caller=caller, timestamp=timestamp, signature=signature, now=timezone.now())


USES: list[Callable[[User, Profile, Services], None]] = [
    _execute,
    _prepare,
    _ask_for_a_challenge,
    _sign_in,
    _refresh,
    _read_quota,
]


@pytest.mark.parametrize("fault", REFUSING_ALONE)
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__.strip("_"))
def test_what_one_of_three_nodes_refuses_alone_is_not_refused(
    user: User, profile: Profile, services: Services, make: Callable[..., Nodes], use: Any, fault: str
) -> None:
    make(3).proxies[0].rule = REFUSING_ALONE[fault]()
    use(user, profile, services)


@pytest.mark.parametrize("fault", REFUSING_ALONE)
def test_a_call_of_a_known_pair_survives_the_refusal_of_one_node_which_is_then_used_last(
    accept: Accept, chain: Chain, make: Callable[..., Nodes], settle: Settle, fault: str
) -> None:
    nodes = make(3)
    accept()
    assert settle() == 1
    nodes.proxies[0].rule = REFUSING_ALONE[fault]()
    _assert_true_to_chain_after(accept(), settle)
    first, *_ = nodes.client.pool
    assert first.backs_off_until > time.monotonic()
    first.backs_off_until = 0
    _assert_true_to_chain_after(accept(), settle)


def _assert_true_to_chain_after(row: RelayTransaction, settle: Settle) -> None:
    assert settle() == 1
    row.refresh_from_db()
    assert row.status == "Success"


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("use", [_execute, _sign_in, _refresh, _read_quota])
def test_what_the_chain_refuses_is_refused_with_any_number_of_nodes(
    user: User,
    profile: Profile,
    services: Services,
    make: Callable[..., Nodes],
    use: Any,
    count: int,
) -> None:
    nodes = make(count)
    for proxy in nodes.proxies:
        proxy.rule = REFUSING_ALONE["returns no bytes"]()
    with pytest.raises((DomainError, AssertionError)):
        use(user, profile, services)
    assert not RelayTransaction.objects.exists()
    assert all(node.backs_off_until == 0 for node in nodes.client.pool)


@pytest.mark.parametrize("count", [1, 2])
def test_a_refusal_stands_if_no_other_node_responds(
    user: User, profile: Profile, services: Services, make: Callable[..., Nodes], count: int
) -> None:
    nodes = make(count)
    nodes.proxies[0].rule = REFUSING_ALONE["returns no bytes"]()
    for proxy in nodes.proxies[1:]:
        proxy.cut()
    with pytest.raises(KeyManagerNotFound):
        _execute(user, profile, services)


def test_an_accepted_call_costs_no_other_node_a_request(
    accept: Accept, chain: Chain, make: Callable[..., Nodes], settle: Settle
) -> None:
    nodes = make(3)
    accept()
    assert settle() == 1
    read: list[str] = []
    for node in nodes.client.pool:
        _count(node, read)
    accept()
    assert read == [next(iter(nodes.client.pool)).name]


def _count(node: Node, read: list[str]) -> None:
    ask = node.ask

    def counted(calls: Sequence[Call], **options: Any) -> list[Any]:
        read.append(node.name)
        return ask(calls, **options)

    vars(node)["ask"] = counted
