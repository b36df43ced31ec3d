"""What controllers sign: the payload of a call, its LSP-25 hash, and the message of a quota request."""

from collections.abc import Sequence
from dataclasses import dataclass

from eth_abi.abi import encode
from eth_account.messages import encode_defunct
from eth_account.signers.local import LocalAccount
from eth_typing import Hash32
from eth_utils.address import is_hex_address, to_checksum_address
from eth_utils.crypto import keccak

from credit_relay_client.schema import Controller

_LSP25_VERSION = 25
_OPERATION_CALL = 0
_EXECUTE = keccak(text="execute(uint256,address,uint256,bytes)")[:4]
_SET_DATA_BATCH = keccak(text="setDataBatch(bytes32[],bytes[])")[:4]
# AddressPermissions:Permissions:<address> of LSP-6.
_PERMISSIONS = bytes.fromhex("4b80742de2bf82acb3630000")
_EXECUTE_BATCH = keccak(text="executeBatch(uint256[],address[],uint256[],bytes[])")[:4]


@dataclass(frozen=True, slots=True)
class Call:
    """
    An action of a profile: a transfer of `value` wei, a contract call with `data`, or both.

    Raises:
        TypeError, ValueError: names the member that is of another type, is no address, has a wrong checksum (EIP-55),
            or does not fit.
    """

    to: str
    value: int = 0
    data: bytes = b""

    def __post_init__(self) -> None:
        check_address(self.to, "to")
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise TypeError(f"value: {self.value!r} is not an int of wei.")
        if not 0 <= self.value < 2**256:
            raise ValueError(f"value: {self.value} does not fit into 256 bits.")
        if not isinstance(self.data, bytes):
            raise TypeError(f"data: {self.data!r} is not bytes, such as bytes.fromhex(…).")


@dataclass(frozen=True, slots=True)
class RelayCall:
    """
    The signed fields of a relay call.

    `nonce` is the integer returned by the key manager's `getNonce`. `validity_timestamps` is start << 128 | end in unix
    seconds, or 0 for no limit.
    """

    chain_id: int
    key_manager: str
    nonce: int
    payload: bytes
    validity_timestamps: int = 0

    @property
    def hash(self) -> bytes:
        """The 32 bytes that a controller signs, without a further prefix."""
        # The last word is the value that the relayer sends with the call: always 0 here.
        numbers = (_LSP25_VERSION, self.chain_id, self.nonce, self.validity_timestamps, 0)
        words = b"".join(number.to_bytes(32, "big") for number in numbers)
        return keccak(b"\x19\x00" + _raw(self.key_manager) + words + self.payload)


def encode_calls(calls: Call | Sequence[Call]) -> bytes:
    """Return the payload for one action of a profile, or for several in a batch."""
    if isinstance(calls, Call):
        calls = [calls]
    if len(calls) == 1:
        types = ["uint256", "address", "uint256", "bytes"]
        (call,) = calls
        return _EXECUTE + encode(types, [_OPERATION_CALL, call.to, call.value, call.data])
    if not calls:
        raise ValueError("There is no call to encode.")
    columns = (
        [_OPERATION_CALL] * len(calls),
        *zip(*((call.to, call.value, call.data) for call in calls), strict=True),
    )
    return _EXECUTE_BATCH + encode(["uint256[]", "address[]", "uint256[]", "bytes[]"], columns)


def encode_removal(removal: Sequence[Controller]) -> bytes:
    """Return the payload that leaves each controller exactly these permissions; without any it is removed."""
    for place, one in enumerate(removal):
        check_address(one["address"], f"removal[{place}].address")
    keys = [_PERMISSIONS + _raw(one["address"]) for one in removal]
    words = [int(one["permissions"], 16) for one in removal]
    values = [word.to_bytes(32, "big") if word else b"" for word in words]
    return _SET_DATA_BATCH + encode(["bytes32[]", "bytes[]"], [keys, values])


def check_address(value: object, name: str) -> None:
    """Raise ValueError unless the service accepts the address: in lower or upper case, or with the right checksum."""
    if not (isinstance(value, str) and value.startswith("0x") and is_hex_address(value)):
        raise ValueError(f"{name}: {value!r} is not an address: 0x and 40 hex digits.")
    digits = value[2:]
    if digits not in (digits.lower(), digits.upper(), to_checksum_address(value)[2:]):
        raise ValueError(f"{name}: the checksum (EIP-55) of {value} is wrong. Copy the address again.")


def quota_message(profile: str, timestamp: int) -> bytes:
    """Return the 32 bytes to sign with `personal_sign` for a quota request."""
    return keccak(_raw(profile) + timestamp.to_bytes(32, "big"))


def personal_sign(account: LocalAccount, message: bytes) -> str:
    """Sign a message like `personal_sign`, for sign-in and quota."""
    return account.sign_message(encode_defunct(primitive=message)).signature.to_0x_hex()


def sign_hash(account: LocalAccount, digest: bytes) -> str:
    """Sign 32 bytes without a prefix: the hash of a relay call."""
    return account.unsafe_sign_hash(Hash32(digest)).signature.to_0x_hex()


def _raw(address: str) -> bytes:
    return bytes.fromhex(address.removeprefix("0x"))
