"""Why a simulated call reverted: the errors of LSP-6, LSP-25, LSP-20, ERC-725X and Solidity, as our refusals."""

from collections.abc import Callable

from gateway.chain import errors
from gateway.chain.abi import decoded
from gateway.common.errors import DomainError
from gateway.common.fields import checksum

# Foreign contracts write these texts, so they are cut.
_REASON_CHARACTERS = 256
_REVERT_DATA_BYTES = 260
_PANICS = {
    0x01: "assertion failed",
    0x11: "arithmetic overflow",
    0x12: "division by zero",
    0x21: "invalid enum value",
    0x31: "pop of an empty array",
    0x32: "array index out of bounds",
    0x41: "out of memory",
    0x51: "call of an uninitialised function",
}


def refusal_from_revert(data: bytes) -> DomainError:
    """Return the refusal for a simulated relay call that reverted with `data`."""
    selector, body = data[:4], data[4:]
    if selector in _REFUSALS:
        types, build = _REFUSALS[selector]
        found = decoded(types, body)
        if found is not None:
            return build(*found)
    if selector in _PROFILE_ERRORS:
        name = _PROFILE_ERRORS[selector]
        return errors.ProfileRefused(
            f"The profile refuses the call: {name}.", reason=name, revertData=_shown(data)
        )
    return _target_reverted(data)


def _shown(data: bytes) -> str:
    return "0x" + data[:_REVERT_DATA_BYTES].hex()


def _target_reverted(data: bytes) -> errors.TargetReverted:
    reason = _reason(data)
    if reason:
        detail = f"The called contract reverts: {reason}."
    elif data:
        detail = f"The called contract reverts with an error of its own, 0x{data[:4].hex()}."
    else:
        detail = "The call reverts without a reason. A malformed payload or a lack of gas ends like this too."
    return errors.TargetReverted(detail, reason=reason or None, revertData=_shown(data))


def _reason(data: bytes) -> str:
    """Read Error(string) and Panic(uint256) of Solidity; anything else has no text."""
    if data[:4] == bytes.fromhex("08c379a0"):
        found = decoded(["bytes"], data[4:])
        text = found[0].decode(errors="replace") if found else ""
        return "".join(letter for letter in text if letter.isprintable())[:_REASON_CHARACTERS].rstrip(". ")
    if data[:4] == bytes.fromhex("4e487b71"):
        found = decoded(["uint256"], data[4:])
        return _PANICS.get(found[0], f"panic {found[0]:#x}") if found else ""
    return ""


def _relay_nonce_refused(signer: str, nonce: int, signature: bytes) -> DomainError:
    return errors.RelayNonceRefused(
        "The key manager does not take this nonce from this signer. Read getNonce again and sign anew.",
        controller=checksum(signer),
        nonce=str(nonce),
    )


def _no_permissions(controller: str) -> DomainError:
    return errors.NoPermissions(
        "The controller has no permissions on the profile. A signature over a wrong hash looks the same.",
        controller=checksum(controller),
    )


def _not_authorised(controller: str, permission: str) -> DomainError:
    return errors.NotAuthorised(
        f"The controller needs the permission {permission}.",
        controller=checksum(controller),
        permission=permission,
    )


def _call_not_allowed(controller: str, target: str, selector: bytes) -> DomainError:
    return errors.CallNotAllowed(
        "The call is not among the controller's allowed calls. Allow it, or give the permission SUPER_CALL.",
        controller=checksum(controller),
        target=checksum(target),
        selector="0x" + selector.hex(),
    )


def _no_calls_allowed(controller: str) -> DomainError:
    return errors.NoCallsAllowed(
        "The controller has CALL without any allowed call. Allow some, or give the permission SUPER_CALL.",
        controller=checksum(controller),
    )


def _data_key_not_allowed(controller: str, data_key: bytes) -> DomainError:
    return errors.DataKeyNotAllowed(
        "The data key is not among the controller's allowed ones. Allow it, or give SUPER_SETDATA.",
        controller=checksum(controller),
        dataKey="0x" + data_key.hex(),
    )


def _no_data_keys_allowed(controller: str) -> DomainError:
    return errors.NoDataKeysAllowed(
        "The controller has SETDATA without any allowed data key. Allow some, or give SUPER_SETDATA.",
        controller=checksum(controller),
    )


def _function_not_supported(selector: bytes) -> DomainError:
    return errors.FunctionNotSupported(
        "Key managers pass on setData, setDataBatch, execute, executeBatch and ownership functions.",
        selector="0x" + selector.hex(),
    )


def _balance_too_low(balance: int, required: int) -> DomainError:
    return errors.ProfileBalanceTooLow(
        "The payload sends more LYX than the profile holds. Relaying pays gas, never the amount.",
        balanceWei=str(balance),
        requiredWei=str(required),
    )


def _fixed(refusal: type[errors.CallRefused], detail: str) -> Callable[..., DomainError]:
    return lambda *_: refusal(detail)


_Builder = Callable[..., DomainError]
_REFUSALS: dict[bytes, tuple[list[str], _Builder]] = {
    bytes.fromhex(selector): (types, build)
    for selector, types, build in (
        ("c9bd9eb9", ["address", "uint256", "bytes"], _relay_nonce_refused),
        ("f292052a", ["address"], _no_permissions),
        ("3bdad6e6", ["address", "string"], _not_authorised),
        ("45147bce", ["address", "address", "bytes4"], _call_not_allowed),
        ("6cb60587", ["address"], _no_calls_allowed),
        ("557ae079", ["address", "bytes32"], _data_key_not_allowed),
        ("ed7fa509", ["address"], _no_data_keys_allowed),
        ("00de4b8a", [], _fixed(errors.RelayCallNotYetValid, "The validity window begins later.")),
        ("5c53a98c", [], _fixed(errors.RelayCallExpired, "The validity window has ended. Sign again.")),
        ("2ba8851c", ["bytes4"], _function_not_supported),
        ("3621bbcc", ["bytes"], _fixed(errors.PayloadMalformed, "The key manager cannot read the payload.")),
        (
            "a431b236",
            [],
            _fixed(errors.KeyManagerCallNotAllowed, "The payload calls the profile's key manager."),
        ),
        (
            "80d6ebae",
            [],
            _fixed(errors.DelegateCallNotAllowed, "The payload is a delegate call. Use a call."),
        ),
        ("0df9a8f8", ["uint256", "uint256"], _balance_too_low),
    )
}
# Further errors of the profile and the key manager themselves; their names say enough.
_PROFILE_ERRORS = {
    bytes.fromhex(selector): name
    for selector, name in (
        ("0b07489b", "ERC725X_ContractDeploymentFailed"),
        ("3041824a", "ERC725X_CreateOperationsRequireEmptyRecipientAddress"),
        ("e9ad2b5f", "ERC725X_ExecuteParametersEmptyArray"),
        ("3ff55f4d", "ERC725X_ExecuteParametersLengthMismatch"),
        ("5ac83135", "ERC725X_MsgValueDisallowedInDelegateCall"),
        ("72f2bc6a", "ERC725X_MsgValueDisallowedInStaticCall"),
        ("b81cd8d9", "ERC725X_NoContractBytecodeProvided"),
        ("7583b3bc", "ERC725X_UnknownOperationType"),
        ("97da5f95", "ERC725Y_DataKeysValuesEmptyArray"),
        ("3bcc8979", "ERC725Y_DataKeysValuesLengthMismatch"),
        ("1fa41397", "InvalidDataValuesForDataKeys"),
        ("187e77ab", "InvalidEncodedAllowedCalls"),
        ("ae6cbd37", "InvalidEncodedAllowedERC725YDataKeys"),
        ("6fd203c5", "InvalidWhitelistedCall"),
        ("4a9fa8cf", "KeyManagerCannotBeSetAsExtensionForLSP20Functions"),
        ("451e4528", "LSP14CallerNotPendingOwner"),
        ("e052a6f8", "LSP14CannotTransferOwnershipToSelf"),
        ("5758dd07", "LSP14MustAcceptOwnershipInSeparateTransaction"),
        ("1b080942", "LSP14NotInRenounceOwnershipInterval"),
        ("9d6741e3", "LSP20CallVerificationFailed"),
        ("8c6a8ae3", "LSP20CallingVerifierFailed"),
        ("0c392301", "LSP20EOACannotVerifyCall"),
        ("bb370b2b", "NoExtensionFoundForFunctionSelector"),
        ("0f7d735b", "NotRecognisedPermissionKey"),
    )
}
