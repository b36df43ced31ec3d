"""Contracts of attackers, and what attacks have cost the service."""

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


def _deploy(services: Services, listing: str) -> str:
    runtime = bytes.fromhex(listing)
    return services.world.deployer.deploy(creation_of(runtime))[0]


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
