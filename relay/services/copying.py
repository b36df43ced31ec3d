"""
Copy the profile of a signed-in owner to another chain, at the same addresses.

A copy begins with the controllers of the first deployment, whatever the home chain says today. So it is refused while
one of them has fewer permissions at home than it would get: a removed key could take the copy before a later
transaction removes it there too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from gateway.chain import lsp23
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain, home, on_home
from gateway.chain.confirmation import confirmed
from gateway.chain.lsp6 import Permission
from gateway.chain.lsp23 import Controller
from relay.errors import CopyAtHome, CopyUnsafe, FirstDeploymentUnknown
from relay.models import RelayTransaction
from relay.services.accepting import consent, deployments, limits
from relay.services.accepting.calls import Caller
from relay.services.accepting.deployments import Order, WantedProfile
from signer.deployments import (
    MODULE,
    RECEIVER_DELEGATES,
    RELEASES,
    Addresses,
    Deployment,
    addresses_of,
    decode,
)
from users.models import User

_MAY_CHANGE = Permission.ADDCONTROLLER | Permission.EDITPERMISSIONS


@dataclass(frozen=True, slots=True)
class FirstDeployment:
    """The salt and the data with which a profile was deployed first, as its wallet sends them."""

    salt: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Copy:
    """A profile on another chain, who controls it, and its deployment; None if it existed there already."""

    addresses: Addresses
    controllers: tuple[Controller, ...]
    relayed: RelayTransaction | None


def copy(*, caller: Caller, first: FirstDeployment | None, now: datetime, request_id: str = "") -> Copy:
    """
    Have the caller's profile deployed on the current chain, and charge its account. A repeat returns the same.

    Raises:
        CopyAtHome: the current chain is home.
        ControllerRevoked: the controller of the session lost SIGN at home.
        FirstDeploymentUnknown: neither the caller, nor the service, nor the home chain's node knows how the profile
            was deployed.
        PostDeploymentRefused: the data of the first deployment have something that the service does not deploy.
        CopyUnsafe: the copy would belong to controllers that were removed at home, or nobody could ever change it.
        DomainError: the deployment was refused, see `deployments.accept`; nothing is stored.
    """
    if get_chain() is home():
        raise CopyAtHome("The profile exists on the home chain.", homeChainId=home().id)
    consent.require_session(caller, now=now)
    wanted = _first_of(caller, first)
    with on_home(), limits.share_of_nodes(caller.user_id):
        confirmed(lambda: _require_safe(wanted))
    holds: list[int | None] = []

    def keep(_: User, hold_id: int | None) -> None:
        holds.append(hold_id)

    deployments.accept(Order(wanted, now, user_id=caller.user_id, request_id=request_id), store=keep)
    relayed = RelayTransaction.objects.filter(
        user_id=caller.user_id, chain_id=get_chain().id, deploys_profile=True
    ).order_by("-pk")
    is_there = bool(holds) and holds[-1] is None
    return Copy(wanted.addresses, wanted.new.controllers, None if is_there else relayed.first())


def _first_of(caller: Caller, first: FirstDeployment | None) -> WantedProfile:
    """Return the first deployment: the one that was sent, made by this service, or found at home, in this order."""
    for deployment in _sent(first) if first else _found(caller):
        addresses = addresses_of(deployment)
        if addresses.profile == caller.profile_address:
            return WantedProfile(lsp23.profile_of_deployment(deployment), addresses)
    raise FirstDeploymentUnknown(
        f"Send the salt and the data with which {caller.profile_address} was deployed."
    )


def _sent(first: FirstDeployment) -> Iterator[Deployment]:
    """The data do not name the code; each release has another address."""
    for release in RELEASES:
        yield Deployment(first.salt, release.profile, release.key_manager, MODULE, first.data)


def _found(caller: Caller) -> Iterator[Deployment]:
    made = RelayTransaction.objects.filter(
        user_id=caller.user_id, deploys_profile=True, status__in=RelayTransaction.EXECUTED
    )
    payload = made.order_by("pk").values_list("payload", flat=True).first()
    if payload and (ours := decode(bytes(payload))):
        yield ours
    with on_home(), limits.share_of_nodes(caller.user_id):
        at_home = get_chain_client().read_first_deployment(profile=caller.profile_address)
    if at_home:
        yield at_home


def _require_safe(wanted: WantedProfile) -> None:
    """Compare what the copy gives to each controller with what the home chain gives it now."""
    client, addresses = get_chain_client(), wanted.addresses
    profile = client.read_profile(
        profile=addresses.profile, controller=addresses.profile, digest=bytes(32), signature=b""
    )
    if profile.owner != addresses.key_manager:
        raise _unsafe("At home the profile has another owner than its first key manager.", ())
    given = {
        one.address: one.permissions
        for one in wanted.new.controllers
        if one.address not in RECEIVER_DELEGATES
    }
    now = client.read_permissions(profile=addresses.profile, controllers=list(given))
    lost = [
        address
        for (address, permissions), today in zip(given.items(), now, strict=True)
        if permissions & ~Permission(today)
    ]
    if lost:
        raise _unsafe(
            "The home chain has taken permissions from first controllers, which would have them on the copy.",
            lost,
        )
    if not any(permissions & _MAY_CHANGE == _MAY_CHANGE for permissions in given.values()):
        raise _unsafe("No first controller may change the controllers of the copy.", given)


def _unsafe(detail: str, controllers: Iterable[str]) -> CopyUnsafe:
    return CopyUnsafe(detail, controllers=list(controllers))
