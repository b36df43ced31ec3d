"""
Errors of the chain: no node responds, a signature has an unknown form, or a contract refuses a call.

Each contract error of LSP-6, LSP-25, LSP-20 and ERC-725X that callers can act on is a class; its docstring is its
entry in the public error catalogue. `gateway.chain.contracts` decodes them.
"""

from typing import ClassVar

from gateway.common.errors import DomainError

RETRY_AFTER_SECONDS = 2


class NodeUnavailable(DomainError):
    """No chain node responds; repeat after `Retry-After` seconds."""

    code, title, status, retryable = "chain-unavailable", "The chain cannot be reached", 503, True
    is_outage = True


class SignerUnavailable(DomainError):
    """
    The signer does not respond, or its limit is reached for now. Repeat the call.

    A call that was sent meanwhile may still be accepted; a repeat returns its hash.
    """

    code, title, status, retryable = "signer-unavailable", "The call cannot be signed now", 503, True


class ChainUnknown(DomainError):
    """The service has no chain with this `chainId`; `GET /api/service` lists its chains."""

    code, title, status = "chain-unknown", "The service has no such chain", 404


def no_node_responds() -> NodeUnavailable:
    """Return the error for a request to which no node responds."""
    return NodeUnavailable("No chain node responds. Repeat the request.", retry_after=RETRY_AFTER_SECONDS)


class CallReverted(Exception):
    """A simulated call reverted; `data` is the revert data, empty if the node did not report it."""

    def __init__(self, data: bytes) -> None:
        super().__init__("the call reverted")
        self.data = data


class UnusableSignature(DomainError):
    """The signature's length, v, r or s fits no known form; send 65 bytes r, s, v."""

    code, title, status = "signature-malformed", "The signature is malformed", 400


class UnrecoverableSignature(UnusableSignature):
    """The signature is well formed, but no public key can be recovered from it for this message."""

    code, title = "signature-unrecoverable", "The signature belongs to no key"


class CallRefused(DomainError):
    """
    The chain refuses the relay call; `detail` and the members give the reason.

    `contract_error` is the Solidity error of this class: its named parameters become members, and `advice`, filled in
    with them, becomes the detail.
    """

    status = 422
    contract_error: ClassVar[str] = ""
    advice: ClassVar[str] = ""


class RelayNonceRefused(CallRefused):
    """
    The key manager does not accept the relay nonce (`InvalidRelayNonce`): it is used, or not due yet.

    `controller` is the signer that the key manager recovered, and `nonce` the refused nonce.
    """

    code, title = "relay-nonce-refused", "The relay nonce is not the next one"
    contract_error = "InvalidRelayNonce(address controller, uint256 nonce, bytes)"
    advice = (
        "The key manager does not accept this nonce from this signer. Read getNonce again and sign again."
    )


class NoPermissions(CallRefused):
    """The `controller` has no permissions on the profile (`NoPermissionsSet`)."""

    code, title = "controller-without-permissions", "The controller has no permissions on the profile"
    contract_error = "NoPermissionsSet(address controller)"
    advice = (
        "The controller has no permissions on the profile. Sign with another one, and check the hash: "
        "a signature over a wrong one causes the same error."
    )


class NotAuthorised(CallRefused):
    """The `controller` lacks the LSP-6 permission named in `permission` (`NotAuthorised`)."""

    code, title = "not-authorised", "The controller lacks a permission"
    contract_error = "NotAuthorised(address controller, string permission)"
    advice = "The controller needs the permission {permission}."


class CallNotAllowed(CallRefused):
    """The allowed calls of `controller` do not include this `target` and `selector` (`NotAllowedCall`)."""

    code, title = "call-not-allowed", "The controller may not make this call"
    contract_error = "NotAllowedCall(address controller, address target, bytes4 selector)"
    advice = (
        "The call is not among the controller's allowed calls. Allow it, or give the permission SUPER_CALL."
    )


class NoCallsAllowed(CallRefused):
    """The `controller` has the permission CALL and no allowed calls (`NoCallsAllowed`)."""

    code, title = "no-calls-allowed", "The controller has no allowed calls"
    contract_error = "NoCallsAllowed(address controller)"
    advice = (
        "The controller has CALL without any allowed call. Allow some, or give the permission SUPER_CALL."
    )


class DataKeyNotAllowed(CallRefused):
    """The allowed data keys of `controller` do not include `dataKey` (`NotAllowedERC725YDataKey`)."""

    code, title = "data-key-not-allowed", "The controller may not set this data key"
    contract_error = "NotAllowedERC725YDataKey(address controller, bytes32 dataKey)"
    advice = "The data key is not among the controller's allowed ones. Allow it, or give SUPER_SETDATA."


class NoDataKeysAllowed(CallRefused):
    """The `controller` has the permission SETDATA and no allowed data keys (`NoERC725YDataKeysAllowed`)."""

    code, title = "no-data-keys-allowed", "The controller has no allowed data keys"
    contract_error = "NoERC725YDataKeysAllowed(address controller)"
    advice = "The controller has SETDATA without any allowed data key. Allow some, or give SUPER_SETDATA."


class RelayCallNotYetValid(CallRefused):
    """
    The validity window of the relay call does not begin by the next block (`RelayCallBeforeStartTime`).

    If the service itself refuses the call, `validFrom` is the start of the window and `serverTime` the service's time,
    both in unix seconds. The same call can be accepted after `Retry-After` seconds.
    """

    code, title = "relay-call-not-yet-valid", "The relay call is not valid yet"
    contract_error = "RelayCallBeforeStartTime()"
    advice = "The validity window has not begun."


class RelayCallExpired(CallRefused):
    """
    The validity window of the relay call has ended (`RelayCallExpired`); sign again with a later end.

    If the service itself refuses the call, `validUntil` is the end of the window and `serverTime` the service's time,
    both in unix seconds.
    """

    code, title = "relay-call-expired", "The relay call has expired"
    contract_error = "RelayCallExpired()"
    advice = "The validity window has ended. Sign again."


class FunctionNotSupported(CallRefused):
    """The payload calls a function that key managers do not execute (`InvalidERC725Function`), given by `selector`."""

    code, title = "payload-function-not-supported", "The payload's function cannot be relayed"
    contract_error = "InvalidERC725Function(bytes4 selector)"
    advice = (
        "Key managers execute only setData, setDataBatch, execute, executeBatch and ownership functions. "
        "To call another contract, wrap its calldata in execute(0, contract, value, calldata)."
    )


class PayloadMalformed(CallRefused):
    """The payload is not the encoded call of a profile's function (`InvalidPayload`)."""

    code, title = "payload-malformed", "The payload is malformed"
    contract_error = "InvalidPayload(bytes)"
    advice = "The key manager cannot read the payload. Send the encoded call of a function of the profile."


class KeyManagerCallNotAllowed(CallRefused):
    """The payload makes the profile call its own key manager (`CallingKeyManagerNotAllowed`)."""

    code, title = "key-manager-call-not-allowed", "A profile may not call its key manager"
    contract_error = "CallingKeyManagerNotAllowed()"
    advice = "The payload calls the profile's key manager. Send the profile's own function as `abi` instead."


class DelegateCallNotAllowed(CallRefused):
    """The payload is a delegate call, which runs other code as the profile (`DelegateCallDisallowedViaKeyManager`)."""

    code, title = "delegate-call-not-allowed", "Delegate calls cannot be relayed"
    contract_error = "DelegateCallDisallowedViaKeyManager()"
    advice = "The payload is a delegate call. Use a call."


class ProfileBalanceTooLow(CallRefused):
    """The profile has `balanceWei`, and the payload sends `requiredWei` (`ERC725X_InsufficientBalance`)."""

    code, title = "profile-balance-too-low", "The profile has too little LYX"
    contract_error = "ERC725X_InsufficientBalance(uint256 balanceWei, uint256 requiredWei)"
    advice = (
        "The payload sends more LYX than the profile has. Send less, or fund it: credits pay for gas alone."
    )


class ProfileRefused(CallRefused):
    """
    The profile or its key manager refuses the payload with the contract error named in `reason`.

    `revertData` is the raw revert data.
    """

    code, title = "profile-refused", "The profile refuses the call"


class TargetReverted(CallRefused):
    """The contract that the profile calls reverts; `reason` is its text, `revertData` the raw revert data."""

    code, title = "target-reverted", "The called contract reverts"


class ResultTooLarge(CallRefused):
    """The called contract returns or reverts with more data than the service reads. Call one that returns less."""

    code, title = "answer-too-large", "The called contract returns too much"


def result_too_large() -> ResultTooLarge:
    """Return the error for a simulation with too much return data: the caller chose the contract."""
    return ResultTooLarge("The simulated call returns or reverts with more data than the service reads.")


# Other errors of the profile and the key manager themselves; each becomes `ProfileRefused` with its name.
PROFILE_ERRORS = (
    "ERC725X_ContractDeploymentFailed()",
    "ERC725X_CreateOperationsRequireEmptyRecipientAddress()",
    "ERC725X_ExecuteParametersEmptyArray()",
    "ERC725X_ExecuteParametersLengthMismatch()",
    "ERC725X_MsgValueDisallowedInDelegateCall()",
    "ERC725X_MsgValueDisallowedInStaticCall()",
    "ERC725X_NoContractBytecodeProvided()",
    "ERC725X_UnknownOperationType(uint256)",
    "ERC725Y_DataKeysValuesEmptyArray()",
    "ERC725Y_DataKeysValuesLengthMismatch()",
    "InvalidDataValuesForDataKeys(bytes32,bytes)",
    "InvalidEncodedAllowedCalls(bytes)",
    "InvalidEncodedAllowedERC725YDataKeys(bytes,string)",
    "InvalidWhitelistedCall(address)",
    "KeyManagerCannotBeSetAsExtensionForLSP20Functions()",
    "LSP14CallerNotPendingOwner(address)",
    "LSP14CannotTransferOwnershipToSelf()",
    "LSP14MustAcceptOwnershipInSeparateTransaction()",
    "LSP14NotInRenounceOwnershipInterval(uint256,uint256)",
    "LSP20CallVerificationFailed(bool,bytes4)",
    "LSP20CallingVerifierFailed(bool)",
    "LSP20EOACannotVerifyCall(address)",
    "NoExtensionFoundForFunctionSelector(bytes4)",
    "NotRecognisedPermissionKey(bytes32)",
)
