"""Contracts of attackers, and what attacks have cost the service."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Sum

from credits.models import CreditEntry, EntrySource
from devstack.services.stack import Services
from gateway.chain.signing import get_signer
from relay.models import Loss

# Succeeds until it is flipped by `flip()`; then it burns all gas that it is given (INVALID).
_BURNER = (
    "6000 35 60e0 1c 63 cde4efa9 14 601b 57 6000 54 6024 57 6001 6001 55 00 5b 6000 54 15 6000 55 00 5b fe"
)
# Reverts where gas has a price, as it has on chain and not in a simulation without one.
_GAS_PRICE_AWARE = "3a 15 600a 57 6000 6000 fd 5b 00"
# Calls the address of the first word with the rest of the calldata. Then it succeeds however that ended, or as that.
_FORWARD = "6020 36 03 80 6020 6000 37 6000 6000 91 6000 6000 6000 35 5a f1"
_FORWARDER, _STRICT_FORWARDER = f"{_FORWARD} 50 00", f"{_FORWARD} 15 601d 57 00 5b 6000 6000 fd"


def deploy_burner(services: Services) -> str:
    return _deploy(services, _BURNER)


def deploy_gas_price_aware(services: Services) -> str:
    return _deploy(services, _GAS_PRICE_AWARE)


def deploy_forwarder(services: Services, *, is_strict: bool = False) -> str:
    return _deploy(services, _STRICT_FORWARDER if is_strict else _FORWARDER)


def deploy_large_reverter(services: Services) -> str:
    """Deploy a contract that reverts with half a megabyte."""
    return _deploy(services, "6207a120 6000 fd")


def _deploy(services: Services, listing: str) -> str:
    runtime = bytes.fromhex(listing)
    return services.world.deployer.deploy(creation_of(runtime))[0]


def _catcher_code() -> bytes:
    """Return code that calls itself to write as many new words as the first word's value, and catches a failure."""
    go = bytes.fromhex(
        "6001 6001 54 01 6001 55"  # storage 1 += 1
        "6000 35 6000 52"  # the first word of the calldata, to memory
        "6000 6000 6020 6000 6000 30 5a f1"  # CALL itself with that word and all gas
    )
    count = bytes.fromhex("6001 6000 54 01 6000 55")  # storage 0 += 1
    head = 6
    end = head + len(go) + 4 + len(count)
    work = end + 2
    loop = work + 4
    return (
        bytes([0x33, 0x30, 0x14, 0x60, work, 0x57])  # called by itself: work
        + go
        + bytes([0x15, 0x60, end, 0x57])  # it failed: end
        + count
        + bytes.fromhex("5b 00")  # end
        + bytes.fromhex("5b 6000 35")  # work: the number of words
        + bytes.fromhex("5b 80 15 60")  # loop: none left
        + bytes([end, 0x57])
        + bytes.fromhex(
            "6001 81 43 6103e8 02 01 611000 01 55"
        )  # a new word: block number * 1000 + words left
        + bytes.fromhex("6001 90 03 60")
        + bytes([loop, 0x56])
    )


@dataclass(frozen=True)
class Catcher:
    """A contract that succeeds even if its inner call runs out of gas, and counts both."""

    address: str
    services: Services

    def work(self, count: int) -> bytes:
        """Return calldata that has the inner call write this many new words."""
        return count.to_bytes(32, "big")

    @property
    def done(self) -> int:
        """How often the inner call succeeded."""
        return self._storage("0x0")

    @property
    def tried(self) -> int:
        """How often the contract was called."""
        return self._storage("0x1")

    def _storage(self, slot: str) -> int:
        return int(self.services.rpc.call("eth_getStorageAt", self.address, slot, "latest"), 16)


def deploy_catcher(services: Services) -> Catcher:
    """Deploy a contract that catches the failure of its inner call."""
    return Catcher(services.world.deployer.deploy(creation_of(_catcher_code()))[0], services)


def deploy_gas_reader(services: Services) -> str:
    """Deploy a contract that logs the gas that it has left."""
    return _deploy(services, "5a 6000 52 6020 6000 a0 00")


def creation_of(runtime: bytes) -> bytes:
    """Return code that deploys the runtime: PUSH2 size DUP1 PUSH1 0c PUSH1 0 CODECOPY PUSH1 0 RETURN."""
    return b"\x61" + len(runtime).to_bytes(2, "big") + bytes.fromhex("80600c6000396000f3") + runtime


class LossMeter:
    """What relayers have spent on chain since the meter was made, and what users have paid for it."""

    def __init__(self, services: Services) -> None:
        self._rpc = services.rpc
        self._addresses = get_signer().addresses()
        self._at_first = self._balances()

    def assert_at_most(self, bound_wei: int) -> int:
        """Return the wei that no user paid; it is within the bound, and no more than the recorded losses."""
        paid = CreditEntry.objects.filter(source=EntrySource.RELAY_TRANSACTION).aggregate(Sum("amount"))
        paid_wei = -(paid["amount__sum"] or 0) * settings.CREDIT_WEI
        lost = self._at_first - self._balances() - paid_wei
        recorded = sum(int(loss.lost_wei or 0) for loss in Loss.objects.all())
        assert lost <= recorded <= bound_wei
        assert not Loss.objects.filter(settled_at=None).exists()
        return lost

    def _balances(self) -> int:
        balances: list[Any] = self._rpc.batch(
            [("eth_getBalance", address, "latest") for address in self._addresses]
        )
        return sum(int(balance, 16) for balance in balances)
