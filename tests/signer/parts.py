"""A signer made of parts: random keys, contracts that are said to be trusted, and a clock that tests move."""

import secrets
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from gateway.chain.contracts import encode_execute_relay_call
from signer.chains import Policy, ServedChain
from signer.client import Certificates, SignerClient
from signer.journal import Journal
from signer.keys import Key, Keyring, MemoryKey
from signer.messages import SigningRequest
from signer.policy import TransactionLimits
from signer.server import Server
from signer.service import SigningService
from signer.targets import NodeUnavailable, Targets, Trust
from signer.transactions import SELF_TRANSFER_GAS, UnsignedTransaction
from tests.fakes.profiles import random_address

CHAIN_ID, FEE_CAP, MAX_GAS = 4201, 20 * 10**9, 3_000_000
POLICY = Policy(
    TransactionLimits(CHAIN_ID, FEE_CAP, MAX_GAS),
    gas_per_hour=10**9,
    max_gas_untrusted=0,
    transfer_wei=2 * 10**17,
    transfers_per_day_wei=10**18,
)


class FakeTargets:
    """Contracts whose trust and used account nonces a test sets; every other address has no contract."""

    def __init__(self) -> None:
        self.trusts: dict[str, Trust] = {}
        self.is_away = False
        self.used: dict[str, int] = {}

    def key_manager(self, trust: Trust = Trust.TRUSTED) -> str:
        """Return a new contract."""
        address = random_address()
        self.trusts[address] = trust
        return address

    def trust_of(self, addresses: Collection[str]) -> dict[str, Trust]:
        """See `Targets`."""
        if self.is_away:
            raise NodeUnavailable("as a test wants it")
        return {address: self.trusts.get(address, Trust.NONE) for address in addresses}

    def used_nonces(self, addresses: Collection[str]) -> dict[str, int]:
        """See `Targets`."""
        if self.is_away:
            raise NodeUnavailable("as a test wants it")
        return {address: self.used.get(address, 0) for address in addresses}


class Clock:
    """A time that only tests move."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def new_key() -> Key:
    """Return a random key in memory."""
    return MemoryKey(secrets.token_bytes(32))


def new_keys(*, treasury: Key | None = None) -> Keyring:
    """Return two relayers in service, one that may be added, and perhaps a treasury."""
    return Keyring.of([new_key(), new_key()], [new_key()], treasury)


def new_service(
    folder: Path, keys: Keyring, targets: Targets, *, clock: Clock | None = None, **changed: Any
) -> SigningService:
    """Return the service on the journal of this folder; `changed` are terms of its policy."""
    journal = Journal(str(folder / "journal"))
    chain = ServedChain(replace(POLICY, **changed), targets)
    return SigningService(keys, [chain], journal, clock=clock or Clock())


def relay_call(address: str, to: str, **changed: Any) -> SigningRequest:
    """Return the request for a relay call, with changes of the transaction."""
    value_wei = changed.pop("value_wei", 0)
    calldata = encode_execute_relay_call(
        signature=secrets.token_bytes(65), nonce=1 << 128, validity=0, payload=secrets.token_bytes(100)
    )
    transaction = UnsignedTransaction(CHAIN_ID, 0, 10**9, 2 * 10**9, 200_000, to, calldata)
    return SigningRequest(address, replace(transaction, **changed), value_wei)


def self_transfer(address: str, **changed: Any) -> SigningRequest:
    """Return the request for a self-transfer."""
    return relay_call(address, address, data=b"", gas_limit=SELF_TRANSFER_GAS, **changed)


@contextmanager
def serving(
    folder: Path,
    service: SigningService,
    *,
    port: int | None = None,
    certificates: Certificates | None = None,
) -> Iterator[str]:
    """Serve on a socket in this folder, or on a port to those who show a certificate; give the URL for clients."""
    url = f"https://127.0.0.1:{port}" if port else f"unix://{folder / 'signer.sock'}"
    with Server(url.replace("https", "tls"), service, certificates=certificates) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield url
        finally:
            server.shutdown()
            thread.join()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Return once it is; fail if that takes long."""
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def client_of(url: str) -> SignerClient:
    """Return a client that waits for as long as a busy machine needs."""
    return SignerClient(url, timeout_seconds=120)
