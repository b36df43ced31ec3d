"""LSP-6: the permission bits of a controller and the data key that holds them."""

from enum import IntFlag

from eth_utils.conversions import to_bytes

# AddressPermissions:Permissions:<address> of LSP-6.
_PERMISSIONS_PREFIX = bytes.fromhex("4b80742de2bf82acb3630000")


class Permission(IntFlag):
    """The bits of LSP-6, least significant first."""

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


# LSP-6's "all permissions" excludes the three with which a controller could take over or break a profile.
ALL_PERMISSIONS = 0x7F3F7F


def permissions_key(controller: str) -> bytes:
    """Return the 32-byte ERC-725Y key under which a profile keeps the controller's permissions."""
    return _PERMISSIONS_PREFIX + to_bytes(hexstr=controller)
