"""
Which profiles the service deploys: their controllers, metadata and receiver delegate, as data of LSP-23's module.

The data decide who owns the new profile. All of it is read, and data that the service does not know are refused. The
functions are pure; `signer.deployments` has the calldata and the addresses.
"""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from typing import NamedTuple

from gateway.chain.lsp3 import PROFILE_KEY, decode_verifiable_uri
from gateway.chain.lsp6 import ALL_PERMISSIONS, Permission, permissions_key
from gateway.common.errors import DomainError
from gateway.common.fields import checksum
from signer.deployments import (
    DELEGATECALLS,
    KEY_MANAGER,
    MODULE,
    PERMISSIONS_PREFIX,
    PROFILE,
    RECEIVER_DELEGATE,
    RECEIVER_DELEGATE_KEY,
    RECEIVER_DELEGATES,
    Deployment,
    decode_entries,
    encode_entries,
)

# SupportedStandards:LSP3Profile, with its only value, and AddressPermissions[] of LSP-6.
STANDARD_KEY = bytes.fromhex("eafec4d89fa9619884b600005ef83ad9559033e6e941db7d7c495acdce616347")
STANDARD_VALUE = bytes.fromhex("5ef83ad9")
CONTROLLERS_KEY = bytes.fromhex("df30dba06db6a30e65354d9a64c609861f089545ca58c6b4dbe31a5f338cb0e3")
# What LUKSO's wallets give to the receiver delegate.
DELEGATE_PERMISSIONS = Permission.REENTRANCY | Permission.SUPER_SETDATA
MOST_CONTROLLERS = 10
MOST_METADATA_BYTES = 1_024
MOST_DATA_BYTES = 8_192
_ALL_BITS = (1 << len(Permission)) - 1
_ADDRESS_BYTES, _WORD, _INDEX_BYTES = 20, 32, 16


class PostDeploymentRefused(DomainError):
    """
    The data of the new profile are refused because of one entry, or as a whole.

    `reason` is the rule. `entry` is the entry's place from 0 and `dataKey` its key; both are null for a rule about all
    entries. The data may have LSP-3 metadata, the receiver delegate that the service uses, and up to 10 controllers,
    each with a permission word and an element of `AddressPermissions[]`. No controller may have DELEGATECALL.
    """

    code, title, status = "profile-data-refused", "The profile's data are refused", 422


class Controller(NamedTuple):
    """A controller of a new profile."""

    address: str
    permissions: Permission


class NewProfile(NamedTuple):
    """A deployment that was judged, and who will control the profile."""

    deployment: Deployment
    controllers: tuple[Controller, ...]


def profile_of_controllers(*, controllers: Sequence[str], metadata: bytes, salt: bytes) -> NewProfile:
    """
    Return the profile that has these controllers with all permissions, as LUKSO's wallets make them.

    Raises:
        PostDeploymentRefused: there are no or too many controllers, one is named twice, or the metadata are refused.
    """
    every = [(address, Permission(ALL_PERMISSIONS)) for address in controllers]
    every.append((RECEIVER_DELEGATE, DELEGATE_PERMISSIONS))
    entries = [(CONTROLLERS_KEY, _index(len(every)))]
    for place, (address, permissions) in enumerate(every):
        entries.append((_element_key(place), bytes.fromhex(address[2:])))
        entries.append((permissions_key(address), permissions.to_bytes(_WORD, "big")))
    entries.append((RECEIVER_DELEGATE_KEY, bytes.fromhex(RECEIVER_DELEGATE[2:])))
    if metadata:
        entries.append((PROFILE_KEY, metadata))
    return profile_of_data(data=encode_entries(entries), salt=salt)


def profile_of_data(*, data: bytes, salt: bytes) -> NewProfile:
    """
    Return the profile that the module's data describe, of the newest code.

    Raises:
        PostDeploymentRefused: see there.
    """
    deployment = Deployment(salt, PROFILE, KEY_MANAGER, MODULE, data)
    return NewProfile(deployment, _controllers_of(data, delegates={RECEIVER_DELEGATE}))


def profile_of_deployment(deployment: Deployment) -> NewProfile:
    """
    Return the profile of a first deployment, which may have an older receiver delegate.

    Raises:
        PostDeploymentRefused: see there.
    """
    return NewProfile(deployment, _controllers_of(deployment.module_data, delegates=RECEIVER_DELEGATES))


def _controllers_of(data: bytes, *, delegates: Set[str]) -> tuple[Controller, ...]:
    if len(data) > MOST_DATA_BYTES:
        raise _refused("data-too-long", f"The data have more than {MOST_DATA_BYTES} bytes.")
    entries = decode_entries(data)
    if entries is None:
        detail = "The data are not `abi.encode(bytes32[], bytes[])` with as many values as keys."
        raise _refused("encoding", detail)
    return _Judge(entries, delegates).controllers()


class _Judge:
    """Reads each entry once, then compares the list of controllers with their permissions."""

    def __init__(self, entries: Sequence[tuple[bytes, bytes]], delegates: Set[str]) -> None:
        self._entries, self._delegates = entries, delegates
        self._length: int | None = None
        # The place of each controller in the list and among the entries, and each permission word.
        self._listed: dict[int, tuple[str, int]] = {}
        self._permissions: dict[str, tuple[Permission, int]] = {}

    def controllers(self) -> tuple[Controller, ...]:
        self._check_repetitions()
        for place, (key, value) in enumerate(self._entries):
            self._rule_of(key)(place, key, value)
        self._compare()
        return tuple(
            Controller(address, permissions) for address, (permissions, _) in self._permissions.items()
        )

    def _check_repetitions(self) -> None:
        counts = Counter(key for key, _ in self._entries)
        for place, (key, _) in enumerate(self._entries):
            if counts[key] > 1:
                raise _refused("repeated-key", "The data set this key more than once.", place, key)

    def _rule_of(self, key: bytes) -> "_Rule":
        exact: dict[bytes, _Rule] = {
            PROFILE_KEY: _metadata,
            STANDARD_KEY: _standard,
            RECEIVER_DELEGATE_KEY: self._read_delegate,
            CONTROLLERS_KEY: self._read_length,
        }
        if key in exact:
            return exact[key]
        if key.startswith(CONTROLLERS_KEY[:_INDEX_BYTES]):
            return self._read_element
        return self._read_permissions if key.startswith(PERMISSIONS_PREFIX) else _unknown

    def _read_length(self, place: int, key: bytes, value: bytes) -> None:
        if len(value) != _INDEX_BYTES:
            raise _refused("array-length", "The length of AddressPermissions[] has 16 bytes.", place, key)
        self._length = int.from_bytes(value, "big")

    def _read_element(self, place: int, key: bytes, value: bytes) -> None:
        if len(value) != _ADDRESS_BYTES or not any(value):
            raise _refused(
                "controller", "A controller is an address of 20 bytes other than zero.", place, key
            )
        self._listed[int.from_bytes(key[_INDEX_BYTES:], "big")] = checksum("0x" + value.hex()), place

    def _read_permissions(self, place: int, key: bytes, value: bytes) -> None:
        if len(value) != _WORD:
            raise _refused("permissions", "A permission word has 32 bytes.", place, key)
        word = int.from_bytes(value, "big")
        address = checksum("0x" + key[-_ADDRESS_BYTES:].hex())
        if word & DELEGATECALLS:
            raise _refused("delegatecall", "No controller may have DELEGATECALL.", place, key)
        if word & ~_ALL_BITS or not word:
            raise _refused("permissions", "The permission word has unknown bits, or none.", place, key)
        if address in self._delegates and word & ~DELEGATE_PERMISSIONS:
            detail = "The receiver delegate may have REENTRANCY and SUPER_SETDATA alone."
            raise _refused("delegate-permissions", detail, place, key)
        self._permissions[address] = Permission(word), place

    def _read_delegate(self, place: int, key: bytes, value: bytes) -> None:
        if value not in {bytes.fromhex(address[2:]) for address in self._delegates}:
            detail = f"The receiver delegate is another contract than {' or '.join(sorted(self._delegates))}."
            raise _refused("receiver-delegate", detail, place, key)

    def _compare(self) -> None:
        """Refuse a list that contradicts its length, and controllers without permissions or outside of the list."""
        if self._length != len(self._listed) or set(self._listed) != set(range(len(self._listed))):
            detail = "AddressPermissions[] has another length than elements, or a gap between them."
            raise _refused("array-length", detail)
        seen: set[str] = set()
        for address, place in self._listed.values():
            key = self._entries[place][0]
            if address in seen:
                raise _refused("controller-twice", f"{address} is in the list twice.", place, key)
            if address not in self._permissions:
                raise _refused("controller-without-permissions", f"{address} has no permissions.", place, key)
            seen.add(address)
        for address, (_, place) in self._permissions.items():
            if address not in seen:
                detail = f"{address} has permissions and is not in AddressPermissions[]."
                raise _refused("controller-unnamed", detail, place, self._entries[place][0])
        people = seen - self._delegates
        if not 0 < len(people) <= MOST_CONTROLLERS:
            raise _refused("controllers", f"A profile begins with 1 to {MOST_CONTROLLERS} controllers.")


_Rule = Callable[[int, bytes, bytes], None]


def _metadata(place: int, key: bytes, value: bytes) -> None:
    if len(value) > MOST_METADATA_BYTES:
        detail = (
            f"The metadata have more than {MOST_METADATA_BYTES} bytes. They are a VerifiableURI, not a file."
        )
        raise _refused("metadata-too-long", detail, place, key)
    if decode_verifiable_uri(value) is None:
        raise _refused("metadata", "The metadata are not a VerifiableURI (LSP-2).", place, key)


def _standard(place: int, key: bytes, value: bytes) -> None:
    if value != STANDARD_VALUE:
        raise _refused("standard", "SupportedStandards:LSP3Profile has another value.", place, key)


def _unknown(place: int, key: bytes, _: bytes) -> None:
    raise _refused("unknown-key", "The service deploys no profile with this data key.", place, key)


def _refused(
    reason: str, detail: str, place: int | None = None, key: bytes | None = None
) -> PostDeploymentRefused:
    at = "" if place is None else f"Entry {place}: "
    return PostDeploymentRefused(
        at + detail, reason=reason, entry=place, dataKey=None if key is None else "0x" + key.hex()
    )


def _index(number: int) -> bytes:
    return number.to_bytes(_INDEX_BYTES, "big")


def _element_key(place: int) -> bytes:
    return CONTROLLERS_KEY[:_INDEX_BYTES] + _index(place)
