"""The data of new profiles: what is built from controllers, and every kind of data that is refused by name."""

import random
import secrets
from collections.abc import Callable

import pytest
from eth_abi.abi import encode as abi_encode
from eth_utils.address import to_checksum_address

from gateway.chain import lsp23
from gateway.chain.lsp3 import PROFILE_KEY
from gateway.chain.lsp6 import ALL_PERMISSIONS, Permission, permissions_key
from signer import deployments
from signer.deployments import PERMISSIONS_PREFIX, RECEIVER_DELEGATE, RECEIVER_DELEGATE_KEY

Entries = list[tuple[bytes, bytes]]
_LENGTH_AT, _DELEGATE_BYTES = 0, bytes.fromhex(RECEIVER_DELEGATE[2:])


def an_address() -> str:
    return to_checksum_address(secrets.token_bytes(20))


def a_uri(length: int = 40) -> bytes:
    url = b"ipfs://" + secrets.token_hex(length // 2).encode()
    return bytes(2) + bytes.fromhex("8019f9b1") + (32).to_bytes(2, "big") + secrets.token_bytes(32) + url


def a_salt() -> bytes:
    return secrets.token_bytes(32)


def an_element(place: int) -> bytes:
    return lsp23.CONTROLLERS_KEY[:16] + place.to_bytes(16, "big")


def entries_of(controllers: list[str], metadata: bytes = b"") -> Entries:
    new = lsp23.profile_of_controllers(controllers=controllers, metadata=metadata, salt=a_salt())
    entries = deployments.decode_entries(new.deployment.module_data)
    assert entries is not None
    return entries


def test_the_named_controllers_get_all_permissions_and_nobody_else_does() -> None:
    controllers = [an_address() for _ in range(random.randrange(1, 11))]
    uri, salt = a_uri(), a_salt()

    new = lsp23.profile_of_controllers(controllers=controllers, metadata=uri, salt=salt)

    assert dict(new.controllers) == {
        **dict.fromkeys(controllers, Permission(ALL_PERMISSIONS)),
        RECEIVER_DELEGATE: Permission.REENTRANCY | Permission.SUPER_SETDATA,
    }
    assert new.deployment == (
        salt,
        deployments.PROFILE,
        deployments.KEY_MANAGER,
        deployments.MODULE,
        new.deployment.module_data,
    )
    entries = dict(entries_of(controllers, uri))
    assert entries[PROFILE_KEY] == uri
    assert entries[RECEIVER_DELEGATE_KEY] == _DELEGATE_BYTES
    assert int.from_bytes(entries[lsp23.CONTROLLERS_KEY], "big") == len(controllers) + 1


def test_data_in_any_order_and_with_fewer_permissions_describe_the_same_profile() -> None:
    controller = an_address()
    entries = entries_of([controller], a_uri())
    random.shuffle(entries)
    entries = [
        (key, (0x600800).to_bytes(32, "big") if key == permissions_key(controller) else value)
        for key, value in entries
    ]
    new = lsp23.profile_of_data(data=deployments.encode_entries(entries), salt=a_salt())
    assert dict(new.controllers)[controller] == Permission(0x600800)


def replaced(key: bytes, value: bytes) -> Callable[[Entries], Entries]:
    return lambda entries: [(name, value if name == key else old) for name, old in entries]


def added(key: bytes, value: bytes) -> Callable[[Entries], Entries]:
    return lambda entries: [*entries, (key, value)]


def without(key: bytes) -> Callable[[Entries], Entries]:
    return lambda entries: [(name, value) for name, value in entries if name != key]


CONTROLLER = an_address()
PERMISSIONS = permissions_key(CONTROLLER)
OTHER = an_address()


def a_word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def a_length(number: int) -> bytes:
    return number.to_bytes(16, "big")


def a_prefixed(prefix: str) -> bytes:
    return bytes.fromhex(prefix) + bytes.fromhex(CONTROLLER[2:])


VAULTS = bytes.fromhex("55482936e01da86729a45d2b87a6b1d3bc582bea0ec00e38bdb340e3af6f9f06")
ASSETS = bytes.fromhex("6460ee3c0aac563ccbf76d6e1d07bada78e3a9514e6382b736ed3f478ab7b90b")
# What is wrong, how the data become so, the rule that refuses them, and the key that the refusal names.
MALFORMED: list[tuple[str, Callable[[Entries], Entries], str, bytes | None]] = [
    ("a random key", added(RANDOM := a_salt(), b"value"), "unknown-key", RANDOM),
    ("an empty key", added(bytes(32), b""), "unknown-key", bytes(32)),
    *(
        (f"{name} of LSP-6", added(a_prefixed(prefix), b"\0"), "unknown-key", a_prefixed(prefix))
        for name, prefix in (
            ("allowed calls", "4b80742de2bf393a64c70000"),
            ("allowed data keys", "4b80742de2bf866c29110000"),
            ("a mapping beside the permissions", "4b80742de2bf82acb3630001"),
        )
    ),
    *(
        (
            f"an extension {name}",
            added(key := bytes.fromhex(text.ljust(64, "0")), _DELEGATE_BYTES),
            "unknown-key",
            key,
        )
        for name, text in (
            ("for a function (LSP-17)", "cee78b4094da860110960000" + "44c028fe"),
            ("for no function (LSP-17)", "cee78b4094da860110960000"),
            ("of a type of receiver (LSP-1)", "0cfc51aec37c55a4d0b10000" + "1234" * 10),
        )
    ),
    ("vaults that are not there (LSP-10)", added(VAULTS, a_length(1)), "unknown-key", VAULTS),
    ("assets that are not there (LSP-5)", added(ASSETS, a_length(1)), "unknown-key", ASSETS),
    (
        "another delegate",
        replaced(RECEIVER_DELEGATE_KEY, secrets.token_bytes(20)),
        "receiver-delegate",
        RECEIVER_DELEGATE_KEY,
    ),
    (
        "no delegate's address",
        replaced(RECEIVER_DELEGATE_KEY, b""),
        "receiver-delegate",
        RECEIVER_DELEGATE_KEY,
    ),
    (
        "a padded delegate",
        replaced(RECEIVER_DELEGATE_KEY, _DELEGATE_BYTES.rjust(32, b"\0")),
        "receiver-delegate",
        RECEIVER_DELEGATE_KEY,
    ),
    *(
        (f"permissions {word:#x}", replaced(PERMISSIONS, a_word(word)), reason, PERMISSIONS)
        for word, reason in (
            (0x8000, "delegatecall"),
            (0x4000, "delegatecall"),
            (ALL_PERMISSIONS | 0x8000, "delegatecall"),
            (ALL_PERMISSIONS | 0x4000, "delegatecall"),
            (2**23, "permissions"),
            (2**255, "permissions"),
            (2**256 - 1, "delegatecall"),
            (2**256 - 1 - 0xC000, "permissions"),
            (0, "permissions"),
        )
    ),
    *(
        (f"permissions of {len(value)} bytes", replaced(PERMISSIONS, value), "permissions", PERMISSIONS)
        for value in (b"", b"\1", a_word(ALL_PERMISSIONS)[1:], a_word(ALL_PERMISSIONS) + b"\0")
    ),
    *(
        (
            f"a delegate with {word:#x}",
            replaced(permissions_key(RECEIVER_DELEGATE), a_word(word)),
            "delegate-permissions",
            permissions_key(RECEIVER_DELEGATE),
        )
        for word in (ALL_PERMISSIONS, 0x1, 0x2, 0x800, 0x20081, 0x400000)
    ),
    (
        "permissions of somebody outside of the list",
        added(permissions_key(OTHER), a_word(ALL_PERMISSIONS)),
        "controller-unnamed",
        permissions_key(OTHER),
    ),
    (
        "permissions to sign of somebody outside of the list",
        added(permissions_key(OTHER), a_word(Permission.SIGN)),
        "controller-unnamed",
        permissions_key(OTHER),
    ),
    (
        "somebody else's address in the list",
        replaced(an_element(0), bytes.fromhex(OTHER[2:])),
        "controller-without-permissions",
        an_element(0),
    ),
    (
        "a controller without permissions",
        without(PERMISSIONS),
        "controller-without-permissions",
        an_element(0),
    ),
    ("the zero address in the list", replaced(an_element(0), bytes(20)), "controller", an_element(0)),
    (
        "an element of 32 bytes",
        replaced(an_element(0), bytes.fromhex(CONTROLLER[2:]).rjust(32, b"\0")),
        "controller",
        an_element(0),
    ),
    ("an empty element", replaced(an_element(0), b""), "controller", an_element(0)),
    (
        "a controller in the list twice",
        lambda entries: [
            *replaced(lsp23.CONTROLLERS_KEY, a_length(3))(entries),
            (an_element(2), bytes.fromhex(CONTROLLER[2:])),
        ],
        "controller-twice",
        an_element(2),
    ),
    *(
        (
            f"a list of length {number}",
            replaced(lsp23.CONTROLLERS_KEY, a_length(number)),
            "array-length",
            None,
        )
        for number in (0, 1, 3, 2**128 - 1)
    ),
    *(
        (
            f"a length of {len(value)} bytes",
            replaced(lsp23.CONTROLLERS_KEY, value),
            "array-length",
            lsp23.CONTROLLERS_KEY,
        )
        for value in (b"", b"\2", a_word(2))
    ),
    ("no length", without(lsp23.CONTROLLERS_KEY), "array-length", None),
    ("a missing element", without(an_element(0)), "array-length", None),
    ("an element beyond the end", added(an_element(7), bytes.fromhex(OTHER[2:])), "array-length", None),
    (
        "a gap",
        lambda entries: [(an_element(5) if key == an_element(1) else key, value) for key, value in entries],
        "array-length",
        None,
    ),
    (
        "the same key twice",
        added(RECEIVER_DELEGATE_KEY, _DELEGATE_BYTES),
        "repeated-key",
        RECEIVER_DELEGATE_KEY,
    ),
    ("permissions twice", added(PERMISSIONS, a_word(0x8000)), "repeated-key", PERMISSIONS),
    ("a length twice", added(lsp23.CONTROLLERS_KEY, a_length(2)), "repeated-key", lsp23.CONTROLLERS_KEY),
    ("metadata that are a file", replaced(PROFILE_KEY, a_uri(2_000)), "metadata-too-long", PROFILE_KEY),
    ("metadata that are text", replaced(PROFILE_KEY, b"my name is Ada"), "metadata", PROFILE_KEY),
    ("empty metadata", replaced(PROFILE_KEY, b""), "metadata", PROFILE_KEY),
    (
        "metadata without a known hash",
        replaced(PROFILE_KEY, bytes(2) + secrets.token_bytes(60)),
        "metadata",
        PROFILE_KEY,
    ),
    ("another standard", added(lsp23.STANDARD_KEY, b"\1\2\3\4"), "standard", lsp23.STANDARD_KEY),
    (
        "a standard in a word",
        added(lsp23.STANDARD_KEY, lsp23.STANDARD_VALUE.ljust(32, b"\0")),
        "standard",
        lsp23.STANDARD_KEY,
    ),
    (
        "nobody but the delegate",
        lambda _: [
            (lsp23.CONTROLLERS_KEY, a_length(1)),
            (an_element(0), _DELEGATE_BYTES),
            (permissions_key(RECEIVER_DELEGATE), a_word(0x20080)),
        ],
        "controllers",
        None,
    ),
    ("nobody", lambda _: [], "array-length", None),
]


@pytest.mark.parametrize(
    ("change", "reason", "key"),
    [pytest.param(*case[1:], id=case[0]) for case in MALFORMED],
)
def test_malformed_data_are_refused_by_the_name_of_their_entry(
    change: Callable[[Entries], Entries], reason: str, key: bytes | None
) -> None:
    entries = change(entries_of([CONTROLLER], a_uri()))
    with pytest.raises(lsp23.PostDeploymentRefused) as refused:
        lsp23.profile_of_data(data=deployments.encode_entries(entries), salt=a_salt())
    place = None if key is None else [name for name, _ in entries].index(key)
    assert refused.value.members == {
        "reason": reason,
        "entry": place,
        "dataKey": None if key is None else "0x" + key.hex(),
    }


def test_data_of_another_encoding_are_refused_as_a_whole() -> None:
    pairs = entries_of([CONTROLLER])
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    good = deployments.encode_entries(pairs)
    for data, reason in (
        (b"", "encoding"),
        (secrets.token_bytes(300), "encoding"),
        (abi_encode(["bytes32[]", "bytes[]"], [keys[:-1], values]), "encoding"),
        (abi_encode(["bytes32[]", "bytes[]"], [keys, values[:-1]]), "encoding"),
        (abi_encode(["bytes[]", "bytes[]"], [keys, values]), "encoding"),
        (good + bytes(32), "encoding"),
        (good[:-32], "encoding"),
        (bytes(lsp23.MOST_DATA_BYTES + 1), "data-too-long"),
    ):
        with pytest.raises(lsp23.PostDeploymentRefused) as refused:
            lsp23.profile_of_data(data=data, salt=a_salt())
        assert refused.value.members == {"reason": reason, "entry": None, "dataKey": None}


@pytest.mark.parametrize(
    ("controllers", "reason"),
    [
        ([], "controllers"),
        ([an_address() for _ in range(11)], "controllers"),
        ([OTHER, OTHER], "repeated-key"),
        ([RECEIVER_DELEGATE], "repeated-key"),
        (["0x" + "0" * 40], "controller"),
    ],
    ids=["none", "eleven", "twice", "the delegate", "the zero address"],
)
def test_controllers_that_make_no_profile_are_refused(controllers: list[str], reason: str) -> None:
    with pytest.raises(lsp23.PostDeploymentRefused) as refused:
        lsp23.profile_of_controllers(controllers=controllers, metadata=b"", salt=a_salt())
    assert refused.value.members["reason"] == reason


def test_the_prefix_of_permissions_is_that_of_their_keys() -> None:
    assert permissions_key(CONTROLLER).startswith(PERMISSIONS_PREFIX)
