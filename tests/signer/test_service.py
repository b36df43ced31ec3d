"""What the signer signs, what it refuses, and what it remembers."""

import socket
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from signer.journal import Journal, JournalInUse
from signer.keys import Key, Keyring, KeyUnusable
from signer.messages import Outcome, SigningRequest
from signer.policy import MAX_PER_NONCE
from signer.service import SigningService
from signer.targets import Trust
from signer.transactions import PolicyViolation, SignedTransaction
from tests.fakes.pool import read_transaction
from tests.fakes.profiles import random_address
from tests.signer.parts import (
    FEE_CAP,
    MAX_GAS,
    Clock,
    FakeTargets,
    client_of,
    new_key,
    new_keys,
    new_service,
    relay_call,
    self_transfer,
    serving,
)


@pytest.fixture
def targets() -> FakeTargets:
    return FakeTargets()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def treasury() -> Key:
    return new_key()


@pytest.fixture
def service(tmp_path: Path, targets: FakeTargets, treasury: Key, clock: Clock) -> SigningService:
    return new_service(tmp_path, new_keys(treasury=treasury), targets, clock=clock)


@pytest.fixture
def relayer(service: SigningService) -> str:
    return service.keys().relayers[0]


def _one(service: SigningService, request: SigningRequest) -> Outcome:
    (outcome,) = service.sign([request])
    return outcome


def _refusal(outcome: Outcome) -> str:
    assert isinstance(outcome, PolicyViolation)
    return outcome.refusal


def _hash(outcome: Outcome) -> str:
    assert isinstance(outcome, SignedTransaction)
    return outcome.transaction_hash


def test_a_batch_is_returned_in_order_with_each_signed_by_its_relayer(
    service: SigningService, targets: FakeTargets
) -> None:
    first, second, spare = service.keys().relayers
    requests = [
        relay_call(first, targets.key_manager()),
        relay_call(second, random_address()),
        self_transfer(spare),
        relay_call(first, targets.key_manager(), account_nonce=1),
    ]
    outcomes = service.sign(requests)
    assert isinstance(outcomes[1], PolicyViolation)
    for request, outcome in zip(requests, outcomes, strict=True):
        if isinstance(outcome, SignedTransaction):
            read = read_transaction(outcome.raw)
            assert (read.sender, read.to, read.value) == (request.address, request.transaction.to, 0)
            assert (read.data, read.account_nonce) == (
                request.transaction.data,
                request.transaction.account_nonce,
            )
    assert service.counts == {"signed": 3, "policy": 1}


@pytest.fixture(scope="module")
def at_the_socket(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[SigningService, FakeTargets, str]]:
    """A signer as an attacker in a web process has it: its socket, and nothing else."""
    folder, targets = tmp_path_factory.mktemp("signer"), FakeTargets()
    service = new_service(folder, new_keys(treasury=new_key()), targets)
    with serving(folder, service) as url:
        yield service, targets, url


@pytest.mark.parametrize(
    "changed",
    [
        {"value_wei": 1},
        {"chain_id": 42},
        {"max_fee_per_gas_wei": FEE_CAP + 1},
        {"max_priority_fee_per_gas_wei": 2 * 10**9 + 1},
        {"gas_limit": MAX_GAS + 1},
        {"gas_limit": 20_999},
        {"account_nonce": 2**63},
        {"data": b""},
        {"data": b"", "gas_limit": 21_000},
        {"data": bytes.fromhex("a9059cbb") + bytes(64)},
        {"to": "stranger"},
        {"to": "untrusted"},
        {"to": "relayer"},
        {"to": "treasury"},
        {"address": "stranger"},
        {"address": "treasury"},
    ],
    ids=str,
)
def test_access_to_the_socket_signs_nothing_that_the_service_never_sends(
    at_the_socket: tuple[SigningService, FakeTargets, str], changed: dict[str, Any]
) -> None:
    service, targets, url = at_the_socket
    keys = service.keys()
    names = {
        "stranger": random_address(),
        "untrusted": targets.key_manager(Trust.UNTRUSTED),
        "relayer": keys.relayers[1],
        "treasury": keys.treasury,
    }
    changed = {
        name: names.get(value, value) if isinstance(value, str) else value for name, value in changed.items()
    }
    sender = changed.pop("address", keys.relayers[0])
    before = service.signed_ever()
    (outcome,) = client_of(url).sign(
        [relay_call(sender, changed.pop("to", targets.key_manager()), **changed)]
    )
    assert _refusal(outcome) == "policy"
    assert service.signed_ever() == before


@pytest.mark.parametrize(
    "text",
    [
        b"POST /sign HTTP/1.1\r\nContent-Length: 4\r\n\r\nnull",
        b'POST /sign HTTP/1.1\r\nContent-Length: 22\r\n\r\n{"transactions":[null]}',
        b"POST /sign HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST /sign HTTP/1.1\r\n\r\n",
        b"GET /sign HTTP/1.1\r\n\r\n",
        b"GET /../etc/passwd HTTP/1.1\r\n\r\n",
    ],
)
def test_an_invalid_request_is_refused_and_the_signer_keeps_running(
    at_the_socket: tuple[SigningService, FakeTargets, str], text: bytes
) -> None:
    service, _, url = at_the_socket
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(120)
        connection.connect(url.removeprefix("unix://"))
        connection.sendall(text)
        assert connection.recv(100).split()[1] in {b"400", b"404"}
    client = client_of(url)
    assert client.keys() == service.keys()
    assert client.read("/health") == "ok\n"
    assert f'signer_spent{{address="{service.keys().treasury}"}} 0' in client.read("/metrics")
    assert stat.S_IMODE(Path(url.removeprefix("unix://")).stat().st_mode) == 0o660


def test_an_account_nonce_carries_one_call_again_only_at_a_higher_fee_and_self_transfers(
    service: SigningService, targets: FakeTargets, relayer: str
) -> None:
    call = relay_call(relayer, targets.key_manager())
    first = _hash(_one(service, call))
    assert _hash(_one(service, call)) == first
    replacement = call._replace(transaction=replace(call.transaction, max_fee_per_gas_wei=3 * 10**9))
    assert _hash(_one(service, replacement)) != first
    cheaper = call._replace(transaction=replace(call.transaction, max_fee_per_gas_wei=10**9))
    other = relay_call(relayer, call.transaction.to, max_fee_per_gas_wei=9 * 10**9)
    more_gas = replacement._replace(
        transaction=replace(replacement.transaction, gas_limit=300_000, max_fee_per_gas_wei=9 * 10**9)
    )
    same_fee = replacement._replace(
        transaction=replace(replacement.transaction, max_priority_fee_per_gas_wei=1)
    )
    wrong = (cheaper, same_fee, other, more_gas)
    assert [_refusal(_one(service, request)) for request in wrong] == ["nonce-used"] * 4
    assert _hash(_one(service, self_transfer(relayer)))
    dearest = call._replace(transaction=replace(call.transaction, max_fee_per_gas_wei=9 * 10**9))
    assert _hash(_one(service, dearest))
    assert _hash(_one(service, self_transfer(relayer, account_nonce=1)))
    late = relay_call(relayer, call.transaction.to, account_nonce=1)
    assert _refusal(_one(service, late)) == "nonce-used"


def test_the_number_of_transactions_per_account_nonce_is_limited(
    service: SigningService, targets: FakeTargets, relayer: str
) -> None:
    call = relay_call(relayer, targets.key_manager())
    tips = range(MAX_PER_NONCE)
    signed = service.sign([self_transfer(relayer, max_priority_fee_per_gas_wei=tip) for tip in tips])
    assert all(isinstance(outcome, SignedTransaction) for outcome in signed)
    assert _refusal(_one(service, self_transfer(relayer, max_fee_per_gas_wei=FEE_CAP))) == "policy"
    assert _refusal(_one(service, call)) == "policy"
    assert _one(service, self_transfer(relayer, max_priority_fee_per_gas_wei=0)) == signed[0]


def test_of_two_calls_on_one_account_nonce_in_a_batch_one_is_signed(
    service: SigningService, targets: FakeTargets, relayer: str
) -> None:
    calls = [relay_call(relayer, targets.key_manager()) for _ in range(2)]
    first, second = service.sign(calls)
    assert _hash(first)
    assert _refusal(second) == "nonce-used"


def test_signed_transactions_survive_a_restart(
    tmp_path: Path, service: SigningService, targets: FakeTargets, clock: Clock, relayer: str
) -> None:
    call = relay_call(relayer, targets.key_manager())
    first = _hash(_one(service, call))
    with pytest.raises(JournalInUse):
        Journal(str(tmp_path / "journal"))
    service.journal.close()
    again = new_service(tmp_path, service.keyring, targets, clock=clock)
    assert _hash(_one(again, call)) == first
    assert again.spent() == service.spent()
    assert _refusal(_one(again, relay_call(relayer, call.transaction.to))) == "nonce-used"


def test_an_hour_of_gas_is_kept_for_each_relayer_and_self_transfers_have_a_tenth_more(
    tmp_path: Path, targets: FakeTargets, clock: Clock
) -> None:
    service = new_service(tmp_path, new_keys(), targets, clock=clock, gas_per_hour=500_000)
    relayer, other, _ = service.keys().relayers
    target = targets.key_manager()
    calls = [relay_call(relayer, target, account_nonce=nonce) for nonce in range(4)]
    outcomes = service.sign([*calls, relay_call(other, target)])
    assert [isinstance(outcome, SignedTransaction) for outcome in outcomes] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert _refusal(outcomes[2]) == "used-up"
    # A replacement takes no more gas than what it replaces.
    replacement = calls[1]._replace(transaction=replace(calls[1].transaction, max_fee_per_gas_wei=FEE_CAP))
    assert _hash(_one(service, replacement))
    signed = [_one(service, self_transfer(relayer, account_nonce=2 + nonce)) for nonce in range(10)]
    assert sum(isinstance(outcome, SignedTransaction) for outcome in signed) == 150_000 // 21_000
    clock.now += 3700
    assert _hash(_one(service, relay_call(relayer, target, account_nonce=20)))


def test_the_treasury_pays_relayers_alone_and_no_more_than_a_day_allows(
    service: SigningService, treasury: Key, clock: Clock
) -> None:
    relayer, *_ = service.keys().relayers
    most = 2 * 10**17

    def pay(nonce: int, value_wei: int, to: str = relayer, **changed: Any) -> Outcome:
        request = self_transfer(treasury.address, account_nonce=nonce, **changed)
        transaction = replace(request.transaction, to=to)
        return _one(service, SigningRequest(treasury.address, transaction, value_wei))

    paid = pay(0, most)
    assert isinstance(paid, SignedTransaction)
    read = read_transaction(paid.raw)
    assert (read.sender, read.to, read.value) == (treasury.address, relayer, most)
    assert _refusal(pay(1, most, to=random_address())) == "policy"
    assert _refusal(pay(1, most + 1)) == _refusal(pay(1, 0)) == "policy"
    assert _refusal(pay(1, most, chain_id=42)) == "policy"
    # Of several on one account nonce the chain takes one.
    assert _hash(pay(0, most // 2, max_fee_per_gas_wei=FEE_CAP))
    assert [isinstance(pay(nonce, most), SignedTransaction) for nonce in range(1, 6)] == [True] * 4 + [False]
    clock.now += 90_000
    assert _hash(pay(9, most))


def test_while_the_signers_node_is_down_only_transactions_without_contract_check_are_signed(
    service: SigningService, targets: FakeTargets, relayer: str
) -> None:
    targets.is_away = True
    call, cancellation = relay_call(relayer, targets.key_manager()), self_transfer(relayer, account_nonce=1)
    undecided, signed = service.sign([call, cancellation])
    assert undecided is None
    assert _hash(signed)
    targets.is_away = False
    assert _hash(_one(service, call))


def test_code_that_is_not_trusted_gets_as_much_gas_as_the_signer_allows_it(
    tmp_path: Path, targets: FakeTargets
) -> None:
    service = new_service(tmp_path, new_keys(), targets, max_gas_untrusted=250_000)
    relayer = service.keys().relayers[0]
    target = targets.key_manager(Trust.UNTRUSTED)
    assert _hash(_one(service, relay_call(relayer, target)))
    assert (
        _refusal(_one(service, relay_call(relayer, target, account_nonce=1, gas_limit=250_001))) == "policy"
    )


def test_an_unresponsive_device_leaves_nothing_signed(tmp_path: Path, targets: FakeTargets) -> None:
    device = _Device()
    service = new_service(tmp_path, Keyring.of([device]), targets)
    call = relay_call(device.address, targets.key_manager())
    device.is_away = True
    assert _one(service, call) is None
    device.is_away = False
    assert _hash(_one(service, call))


class _Device:
    """A device that may be unplugged."""

    def __init__(self) -> None:
        self._key, self.is_away = new_key(), False
        self.address = self._key.address

    def sign(self, digest: bytes) -> bytes:
        if self.is_away:
            raise KeyUnusable("as a test wants it")
        return self._key.sign(digest)
