"""
Copy the profile of a signed-in owner to another chain, at the same addresses.

A copy begins with the controllers of the first deployment, whatever the home chain says today. If one of them has fewer
permissions at home than it would get, its permissions are taken in the transaction that deploys the copy: the removed
key could take the copy before any later transaction.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from gateway.chain import lsp23
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain, home, on_home
from gateway.chain.confirmation import confirmed
from gateway.chain.lsp23 import Controller
from relay.errors import CopyAtHome, FirstDeploymentUnknown
from relay.models import RelayTransaction
from relay.services import removing
from relay.services.accepting import consent, deployments, limits
from relay.services.accepting.calls import Caller
from relay.services.accepting.deployments import Order, WantedProfile
from signer import removals
from signer.deployments import MODULE, RELEASES, Addresses, Deployment, addresses_of, decode
from users.models import User


@dataclass(frozen=True, slots=True)
class FirstDeployment:
    """The salt and the data with which a profile was deployed first, as its wallet sends them."""

    salt: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Copy:
    """A profile on another chain, who controls it at first, and its deployment; None if it existed there already."""

    addresses: Addresses
    controllers: tuple[Controller, ...]
    relayed: RelayTransaction | None


def copy(
    *,
    caller: Caller,
    first: FirstDeployment | None,
    now: datetime,
    removal_signature: bytes = b"",
    request_id: str = "",
) -> Copy:
    """
    Have the caller's profile deployed on the current chain, and charge its account. A repeat returns the same.

    `removal_signature` is that of a first controller over the removal that `CopyNeedsRemoval` names.

    Raises:
        CopyAtHome: the current chain is home.
        ControllerRevoked: the controller of the session lost SIGN at home.
        FirstDeploymentUnknown: neither the caller, nor the service, nor the home chain's node knows how the profile
            was deployed.
        PostDeploymentRefused: the data of the first deployment have something that the service does not deploy.
        CopyUnsafe: nobody could ever change the copy, or no first controller may take it back from removed ones.
        CopyNeedsRemoval: home has taken permissions from first controllers, and the signature is missing or another's.
        CopyTaken: the copy exists, and first controllers have there what home has taken from them.
        UnusableSignature: no address can be recovered from the signature.
        DomainError: the deployment was refused, see `deployments.accept`; nothing is stored.
    """
    if get_chain() is home():
        raise CopyAtHome("The profile exists on the home chain.", homeChainId=home().id)
    consent.require_session(caller, now=now)
    wanted = _first_of(caller, first)
    with on_home(), limits.share_of_nodes(caller.user_id):
        removal = confirmed(lambda: removing.needed(wanted), refuses=lambda removal: bool(removal.lost))
    with limits.share_of_nodes(caller.user_id):
        with_removal = removing.signed(removal, removal_signature) if removal.lost else None
    holds: list[int | None] = []

    def keep(_: User, hold_id: int | None) -> None:
        holds.append(hold_id)

    order = Order(wanted, now, user_id=caller.user_id, request_id=request_id, with_removal=with_removal)
    deployments.accept(order, store=keep)
    relayed = RelayTransaction.objects.filter(
        user_id=caller.user_id, chain_id=get_chain().id, deploys_profile=True
    ).order_by("-pk")
    is_there = bool(holds) and holds[-1] is None
    return Copy(wanted.addresses, removal.controllers, None if is_there else relayed.first())


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
    if payload:
        with_removal = removals.decode(bytes(payload))
        ours = with_removal.deployment if with_removal else decode(bytes(payload))
        if ours:
            yield ours
    with on_home(), limits.share_of_nodes(caller.user_id):
        at_home = get_chain_client().read_first_deployment(profile=caller.profile_address)
    if at_home:
        yield at_home
