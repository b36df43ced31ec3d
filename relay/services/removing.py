"""
Take from the copy of a profile what its home chain has taken from first controllers.

A copy begins with the controllers of the first deployment. Each of them that has fewer permissions at home keeps on the
copy what it has in both. A first controller that home trusts signs that as the copy's first relay call.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.confirmation import confirmed
from gateway.chain.lsp6 import Permission, permissions_key
from gateway.chain.lsp23 import Controller
from gateway.chain.lsp25 import relay_digest
from gateway.chain.signatures import recover_signers
from gateway.common.fields import checksum
from relay.errors import CopyNeedsRemoval, CopyTaken, CopyUnsafe
from relay.services.accepting.deployments import WantedProfile, controllers_body
from signer import removals
from signer.contracts import code_hash
from signer.deployments import RECEIVER_DELEGATES
from signer.removals import CopyWithRemoval, Entries, payload_of

_MAY_CHANGE = Permission.ADDCONTROLLER | Permission.EDITPERMISSIONS
_MAY_REMOVE = Permission.EDITPERMISSIONS | Permission.EXECUTE_RELAY_CALL
_WORD, _ADDRESS_BYTES = 32, 20


@dataclass(frozen=True, slots=True)
class Removal:
    """What a copy gives to each first controller, and what home leaves of it. Permissions are LSP-6 bits."""

    wanted: WantedProfile
    kept: Mapping[str, int]

    @property
    def given(self) -> dict[str, int]:
        return first_permissions(self.wanted)

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """Who can act for the copy once the removal is executed."""
        now = (
            one._replace(permissions=Permission(self.kept.get(one.address, one.permissions)))
            for one in self.wanted.new.controllers
        )
        return tuple(one for one in now if one.permissions)

    @property
    def lost(self) -> list[str]:
        """The controllers from which home has taken permissions."""
        return [address for address, permissions in self.given.items() if permissions != self.kept[address]]

    @property
    def entries(self) -> Entries:
        """The data keys that give the lost ones no more on the copy than at home."""
        return tuple(
            (
                permissions_key(address),
                self.kept[address].to_bytes(_WORD, "big") if self.kept[address] else b"",
            )
            for address in self.lost
        )

    @property
    def signers(self) -> list[str]:
        """The first controllers that may take permissions on the copy, and that home trusts."""
        return [
            address
            for address, permissions in self.given.items()
            if permissions & _MAY_REMOVE == _MAY_REMOVE == self.kept[address] & _MAY_REMOVE
            and address not in self.lost
        ]

    @property
    def terms(self) -> dict[str, Any]:
        """What a wallet signs, as problem documents name it."""
        return {
            "removal": controllers_body(
                Controller(address, Permission(self.kept[address])) for address in self.lost
            ),
            "keyManagerAddress": self.wanted.addresses.key_manager,
            "payload": "0x" + payload_of(self.entries).hex(),
        }

    def digest(self) -> bytes:
        """Return the 32 bytes that a controller signs for the current chain (LSP-25)."""
        return relay_digest(
            chain_id=get_chain().id,
            key_manager=self.wanted.addresses.key_manager,
            relay_nonce=0,
            validity=0,
            payload=payload_of(self.entries),
        )


def first_permissions(wanted: WantedProfile) -> dict[str, int]:
    """Return what the first deployment gives to each of its controllers, without its receiver delegate."""
    return {
        one.address: int(one.permissions)
        for one in wanted.new.controllers
        if one.address not in RECEIVER_DELEGATES
    }


def needed(wanted: WantedProfile) -> Removal:
    """
    Read the home chain; return what has to be taken from the copy.

    Raises:
        CopyUnsafe: the profile has another key manager at home, or nobody could change the copy.
    """
    client, addresses, given = get_chain_client(), wanted.addresses, first_permissions(wanted)
    profile = client.read_profile(
        profile=addresses.profile, controller=addresses.profile, digest=bytes(32), signature=b""
    )
    if profile.owner != addresses.key_manager:
        raise CopyUnsafe("At home the profile has another owner than its first key manager.", controllers=[])
    if not any(permissions & _MAY_CHANGE == _MAY_CHANGE for permissions in given.values()):
        detail = "No first controller may change the controllers of the copy."
        raise CopyUnsafe(detail, controllers=list(given))
    now = client.read_permissions(profile=addresses.profile, controllers=list(given))
    kept = {address: given[address] & today for address, today in zip(given, now, strict=True)}
    return Removal(wanted, kept)


def signed(removal: Removal, signature: bytes) -> CopyWithRemoval | None:
    """
    Return the copy with its signed removal; None if the copy exists, and nothing has to be removed there.

    Raises:
        CopyTaken: the copy exists, and first controllers have there what home has taken from them.
        CopyUnsafe: no first controller may remove the others, or the chain has no trusted multicall.
        CopyNeedsRemoval: the signature is missing, or another's.
        UnusableSignature: no address can be recovered from the signature.
    """
    profile, terms = removal.wanted.addresses.profile, removal.terms
    if confirmed(lambda: exists(profile)):
        if not confirmed(lambda: holds(profile, removal.entries), refuses=lambda held: not held):
            raise CopyTaken("The copy exists already, with controllers that home has removed.", **terms)
        return None
    if not removal.signers:
        raise CopyUnsafe(
            "No first controller that home still trusts may remove the others from the copy.",
            controllers=removal.lost,
        )
    if code_hash(get_chain_client().read_code(address=removals.MULTICALL)) != removals.MULTICALL_CODE_HASH:
        raise CopyUnsafe(
            "The chain has no Multicall3, which would remove them in the transaction of the copy.",
            controllers=removal.lost,
        )
    terms["signers"] = removal.signers
    if not signature:
        raise CopyNeedsRemoval("Send `removalSignature`, by one of the signers over the payload.", **terms)
    normalised, (signer,) = recover_signers(signature, removal.digest(), chain_id=get_chain().id)
    if signer not in removal.signers:
        raise CopyNeedsRemoval(f"`removalSignature` over the payload recovers {signer}.", **terms)
    return CopyWithRemoval(removal.wanted.new.deployment, removal.entries, normalised)


def exists(profile: str) -> bool:
    """Read the current chain; return whether the profile has code there."""
    state = get_chain_client().read_profile(
        profile=profile, controller=profile, digest=bytes(32), signature=b""
    )
    return bool(state.profile_code)


def holds(profile: str, entries: Entries) -> bool:
    """Read the current chain; return whether the controllers have no more there than the removal leaves them."""
    controllers = [checksum("0x" + key[-_ADDRESS_BYTES:].hex()) for key, _ in entries]
    now = get_chain_client().read_permissions(profile=profile, controllers=controllers)
    allowed = (int.from_bytes(value, "big") for _, value in entries)
    return not any(today & ~left for today, left in zip(now, allowed, strict=True))
