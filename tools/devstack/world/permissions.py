"""LSP-6: the permissions of controllers, and their data keys."""

from collections.abc import Iterable
from enum import IntFlag

_ARRAY = bytes.fromhex("df30dba06db6a30e65354d9a64c609861f089545ca58c6b4dbe31a5f338cb0e3")
_PERMISSIONS = bytes.fromhex("4b80742de2bf82acb3630000")
_ALLOWED_CALLS = bytes.fromhex("4b80742de2bf393a64c70000")


class Permission(IntFlag):
    """The bits of an LSP-6 permission word."""

    CHANGEOWNER = 1 << 0
    ADDCONTROLLER = 1 << 1
    EDITPERMISSIONS = 1 << 2
    ADDEXTENSIONS = 1 << 3
    CHANGEEXTENSIONS = 1 << 4
    ADDUNIVERSALRECEIVERDELEGATE = 1 << 5
    CHANGEUNIVERSALRECEIVERDELEGATE = 1 << 6
    REENTRANCY = 1 << 7
    SUPER_TRANSFERVALUE = 1 << 8
    TRANSFERVALUE = 1 << 9
    SUPER_CALL = 1 << 10
    CALL = 1 << 11
    SUPER_STATICCALL = 1 << 12
    STATICCALL = 1 << 13
    SUPER_DELEGATECALL = 1 << 14
    DELEGATECALL = 1 << 15
    DEPLOY = 1 << 16
    SUPER_SETDATA = 1 << 17
    SETDATA = 1 << 18
    ENCRYPT = 1 << 19
    DECRYPT = 1 << 20
    SIGN = 1 << 21
    EXECUTE_RELAY_CALL = 1 << 22

    @property
    def names(self) -> list[str]:
        """The names of the bits that are set, lowest first."""
        return [str(bit.name) for bit in Permission if bit in self]


ALL_PERMISSIONS = Permission(0x7F3F7F)
"""All permissions except REENTRANCY and delegate calls, like "all" in LUKSO's tools."""


def permission_entries(
    controllers: Iterable[tuple[str, Permission, bytes]],
) -> list[tuple[bytes, bytes]]:
    """
    Return the data keys and values that make these addresses a profile's controllers.

    Each controller is `(address, permissions, allowed calls)`; empty allowed calls are not set.
    """
    entries: list[tuple[bytes, bytes]] = []
    for index, (address, permissions, calls) in enumerate(controllers):
        raw = bytes.fromhex(address[2:])
        entries.append((_ARRAY[:16] + index.to_bytes(16, "big"), raw))
        entries.append((_PERMISSIONS + raw, permissions.to_bytes(32, "big")))
        if calls:
            entries.append((_ALLOWED_CALLS + raw, calls))
        length = index + 1
    return [(_ARRAY, length.to_bytes(16, "big")), *entries] if entries else []


def allow_transfers_to(address: str) -> bytes:
    """Return an AllowedCalls value of one item: value transfers and calls to `address`, any function."""
    transfer_and_call = (0b11).to_bytes(4, "big")
    anything = b"\xff" * 4
    item = transfer_and_call + bytes.fromhex(address[2:]) + anything + anything
    return len(item).to_bytes(2, "big") + item
