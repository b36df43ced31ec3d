"""
The one call with which LSP-23's factory deploys a profile and its key manager as minimal proxies.

Of all calldata that the factory accepts, only one form is read and written here: nothing is funded, the profile is
initialised with the module, the key manager with the profile, and the module's data are data keys with their values.
"""

from collections.abc import Sequence
from typing import NamedTuple

from eth_hash.auto import keccak
from eth_utils.abi import function_signature_to_4byte_selector
from eth_utils.address import to_checksum_address

# These contracts have the same addresses on every chain.
FACTORY = "0x2300000A84D25dF63081feAa37ba6b62C4c89a30"
MODULE = "0x000000000066093407b6704B89793beFfD0D8F00"
RECEIVER_DELEGATE = "0x7870C5B8BC9572A8001C3f96f7ff59961B23500D"
PROFILE = "0x3024D38EA2434BA6635003Dc1BDC0daB5882ED4F"
KEY_MANAGER = "0x2Fe3AeD98684E7351aD2D408A43cE09a738BF8a4"


class Release(NamedTuple):
    """The released code of a profile and of its key manager, and the receiver delegate of LUKSO's wallets then."""

    profile: str
    key_manager: str
    receiver_delegate: str


# 0.14.0 and 0.12.1, the newest first. New profiles get the newest code; a copy needs that of its first deployment.
RELEASES = (
    Release(PROFILE, KEY_MANAGER, RECEIVER_DELEGATE),
    Release(
        "0x52c90985AF970D4E0DC26Cb5D052505278aF32A9",
        "0xa75684d7D048704a2DB851D05Ba0c3cbe226264C",
        "0xA5467dfe7019bF2C7C5F7A707711B9d4cAD118c8",
    ),
)
RECEIVER_DELEGATES = frozenset(release.receiver_delegate for release in RELEASES)

# LSP1UniversalReceiverDelegate, and the beginning of AddressPermissions:Permissions:<address> of LSP-6.
RECEIVER_DELEGATE_KEY = bytes.fromhex("0cfc51aec37c55a4d0b1a65c6255c4bf2fbdf6277f3cc0730c45b828b6db8b47")
PERMISSIONS_PREFIX = bytes.fromhex("4b80742de2bf82acb3630000")
# DELEGATECALL and SUPER_DELEGATECALL.
DELEGATECALLS = 0xC000

PRIMARY, SECONDARY = "(bytes32,uint256,address,bytes)", "(uint256,address,bytes,bool,bytes)"
DEPLOY = function_signature_to_4byte_selector(f"deployERC1167Proxies({PRIMARY},{SECONDARY},address,bytes)")
_INITIALIZE = function_signature_to_4byte_selector("initialize(address)")
_WORD, _ADDRESS_BYTES = 32, 20
# Where the calldata has what differs between deployments; see `encode`.
_SALT_AT, _PROFILE_AT, _KEY_MANAGER_AT, _MODULE_AT, _DATA_AT = (
    4 + _WORD * place for place in (4, 6, 12, 2, 19)
)
_PROXY = "3d602d80600a3d3981f3363d3d373d3d3d363d73{}5af43d82803e903d91602b57fd5bf3"


class Deployment(NamedTuple):
    """A profile and its key manager to deploy: implementations, module and salt, and the module's data."""

    salt: bytes
    profile: str
    key_manager: str
    module: str
    module_data: bytes


class Addresses(NamedTuple):
    """The addresses at which the factory deploys them."""

    profile: str
    key_manager: str


def encode(deployment: Deployment) -> bytes:
    """Return the calldata for the factory."""
    module, data = _address(deployment.module), deployment.module_data
    return b"".join(
        (
            DEPLOY,
            _words(4 * _WORD, 11 * _WORD),
            module,
            _words(19 * _WORD),
            # The profile: its salt, no value, its implementation and its initialisation.
            deployment.salt,
            _words(0),
            _address(deployment.profile),
            _words(4 * _WORD),
            _bytes(_INITIALIZE + module),
            # The key manager: no value, its implementation, and its initialisation with the profile's address.
            _words(0),
            _address(deployment.key_manager),
            _words(5 * _WORD, 1, 7 * _WORD),
            _bytes(_INITIALIZE),
            _bytes(b""),
            _bytes(data),
        )
    )


def decode(calldata: bytes) -> Deployment | None:
    """Return what the calldata deploys; None if it is not exactly what `encode` returns for it."""
    if len(calldata) < _DATA_AT + _WORD or not calldata.startswith(DEPLOY):
        return None
    length = int.from_bytes(calldata[_DATA_AT : _DATA_AT + _WORD], "big")
    if length > len(calldata):
        return None
    deployment = Deployment(
        calldata[_SALT_AT : _SALT_AT + _WORD],
        _address_at(calldata, _PROFILE_AT),
        _address_at(calldata, _KEY_MANAGER_AT),
        _address_at(calldata, _MODULE_AT),
        calldata[_DATA_AT + _WORD : _DATA_AT + _WORD + length],
    )
    return deployment if encode(deployment) == calldata else None


def encode_entries(entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return the module's data for these data keys and values: `abi.encode(bytes32[], bytes[])`."""
    count = len(entries)
    values = [_bytes(value) for _, value in entries]
    offsets = [_WORD * count]
    for value in values[:-1]:
        offsets.append(offsets[-1] + len(value))
    keys = b"".join(key for key, _ in entries)
    head = _words(2 * _WORD, 3 * _WORD + len(keys))
    return head + _words(count) + keys + _words(count, *offsets[:count]) + b"".join(values)


def decode_entries(data: bytes) -> list[tuple[bytes, bytes]] | None:
    """Return the data keys and values in the module's data; None if it is not exactly their `encode_entries`."""
    count = int.from_bytes(data[2 * _WORD : 3 * _WORD], "big")
    # An entry has at least its key, its offset and its length.
    if count * 3 * _WORD > len(data):
        return None
    keys = [data[_WORD * place : _WORD * (place + 1)] for place in range(3, 3 + count)]
    at = _WORD * (4 + 2 * count)
    values = []
    for _ in range(count):
        length = int.from_bytes(data[at : at + _WORD], "big")
        if length > len(data):
            return None
        values.append(data[at + _WORD : at + _WORD + length])
        at += _WORD + length + -length % _WORD
    entries = list(zip(keys, values, strict=True))
    return entries if encode_entries(entries) == data else None


def addresses_of(deployment: Deployment, *, factory: str = FACTORY) -> Addresses:
    """Return the addresses at which the factory deploys the proxies. They are the same on every chain."""
    terms = b"".join(
        (
            deployment.salt,
            _address(deployment.key_manager),
            _words(7 * _WORD, 1, 9 * _WORD),
            _address(deployment.module),
            _words(10 * _WORD),
            _bytes(_INITIALIZE),
            _bytes(b""),
            _bytes(deployment.module_data),
        )
    )
    profile = _proxy_address(factory, deployment.profile, keccak(terms))
    key_manager = _proxy_address(factory, deployment.key_manager, keccak(bytes.fromhex(profile[2:])))
    return Addresses(profile, key_manager)


def _proxy_address(factory: str, implementation: str, salt: bytes) -> str:
    code = bytes.fromhex(_PROXY.format(implementation[2:]))
    return to_checksum_address(keccak(b"\xff" + bytes.fromhex(factory[2:]) + salt + keccak(code))[12:])


def _words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(_WORD, "big") for number in numbers)


def _address(address: str) -> bytes:
    return bytes.fromhex(address[2:]).rjust(_WORD, b"\0")


def _address_at(calldata: bytes, at: int) -> str:
    return to_checksum_address(calldata[at + _WORD - _ADDRESS_BYTES : at + _WORD])


def _bytes(data: bytes) -> bytes:
    return _words(len(data)) + data + bytes(-len(data) % _WORD)
