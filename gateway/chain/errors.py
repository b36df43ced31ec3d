"""
The chain's refusals: the node is away, a signature is unusable, a contract says no.

Contract errors of LSP-6, LSP-25, LSP-20 and ERC-725X become one class each; their
docstrings are the public error catalogue. `gateway.chain.contracts` decodes them.
"""

from typing import ClassVar

from gateway.common.errors import DomainError


class NodeUnavailable(DomainError):
    """No chain node answers; repeat after `Retry-After` seconds."""

    code, title, status, retryable = "chain-unavailable", "The chain cannot be reached", 503, True
    is_outage = True


class SignerUnavailable(DomainError):
    """
    The process that holds the relayers' keys does not answer, or may sign no more for now. Repeat the call.

    A call that was handed in meanwhile may still be accepted; a repeat gets its hash.
    """

    code, title, status, retryable = "signer-unavailable", "The call cannot be signed now", 503, True


def no_answer() -> NodeUnavailable:
    """Return the error for a request that no node answers."""
    return NodeUnavailable("No chain node answers. Repeat the request.", retry_after=2)


class CallReverted(Exception):
    """A simulated call reverted; `data` is what the contract returned, empty where nothing is known."""

    def __init__(self, data: bytes) -> None:
        super().__init__("the call reverted")
        self.data = data


class UnusableSignature(DomainError):
    """The signature has a length, v, r or s of no known form; send 65 bytes r, s, v."""

    code, title, status = "signature-malformed", "The signature is malformed", 400


class UnrecoverableSignature(UnusableSignature):
    """The signature is well formed, but no key can have made it over this message."""

    code, title = "signature-unrecoverable", "The signature belongs to no key"


class CallRefused(DomainError):
    """
    The chain refuses the relay call as it stands; `detail` and the members say why.

    `contract_error` is the Solidity error that means this refusal: its named parameters
    become members, and `advice` with these members becomes the detail.
    """

    status = 422
    contract_error: ClassVar[str] = ""
    advice: ClassVar[str] = ""


class RelayNonceRefused(CallRefused):
    """
    The relay nonce is used up or not yet due at the key manager (`InvalidRelayNonce`).

    `controller` is the signer that the key manager recovered, and `nonce` the one that it does not take.
    """

    code, title = "relay-nonce-refused", "The relay nonce is not the next one"
    contract_error = "InvalidRelayNonce(address controller, uint256 nonce, bytes)"
    advice = "The key manager does not take this nonce from this signer. Read getNonce again and sign anew."


class NoPermissions(CallRefused):
    """The `controller` has no permission at all on the profile (`NoPermissionsSet`)."""

    code, title = "controller-without-permissions", "The controller has no permissions on the profile"
    contract_error = "NoPermissionsSet(address controller)"
    advice = "The controller has no permissions on the profile. A signature over a wrong hash looks the same."


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
    """The `controller` may make calls in principle and has no allowed call (`NoCallsAllowed`)."""

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
    """The `controller` may set data in principle and has no allowed data key (`NoERC725YDataKeysAllowed`)."""

    code, title = "no-data-keys-allowed", "The controller has no allowed data keys"
    contract_error = "NoERC725YDataKeysAllowed(address controller)"
    advice = "The controller has SETDATA without any allowed data key. Allow some, or give SUPER_SETDATA."


class RelayCallNotYetValid(CallRefused):
    """
    The validity window of the relay call has not begun (`RelayCallBeforeStartTime`).

    Where the service found this before the chain was asked, `validFrom` is the begin and `serverTime` the time that
    it was compared with, both in unix seconds.
    """

    code, title = "relay-call-not-yet-valid", "The relay call is not valid yet"
    contract_error = "RelayCallBeforeStartTime()"
    advice = "The validity window begins later."


class RelayCallExpired(CallRefused):
    """
    The validity window of the relay call has ended (`RelayCallExpired`); sign again with a later end.

    Where the service found this before the chain was asked, `validUntil` is the end and `serverTime` the time that
    it was compared with, both in unix seconds.
    """

    code, title = "relay-call-expired", "The relay call has expired"
    contract_error = "RelayCallExpired()"
    advice = "The validity window has ended. Sign again."


class FunctionNotSupported(CallRefused):
    """The payload calls a function that key managers do not pass on (`InvalidERC725Function`), by its `selector`."""

    code, title = "payload-function-not-supported", "The payload's function cannot be relayed"
    contract_error = "InvalidERC725Function(bytes4 selector)"
    advice = "Key managers pass on setData, setDataBatch, execute, executeBatch and ownership functions."


class PayloadMalformed(CallRefused):
    """The payload is not the encoded call of a profile's function (`InvalidPayload`)."""

    code, title = "payload-malformed", "The payload is malformed"
    contract_error = "InvalidPayload(bytes)"
    advice = "The key manager cannot read the payload."


class KeyManagerCallNotAllowed(CallRefused):
    """The payload makes the profile call its own key manager (`CallingKeyManagerNotAllowed`)."""

    code, title = "key-manager-call-not-allowed", "A profile may not call its key manager"
    contract_error = "CallingKeyManagerNotAllowed()"
    advice = "The payload calls the profile's key manager."


class DelegateCallNotAllowed(CallRefused):
    """The payload makes the profile run foreign code as its own (`DelegateCallDisallowedViaKeyManager`)."""

    code, title = "delegate-call-not-allowed", "Delegate calls cannot be relayed"
    contract_error = "DelegateCallDisallowedViaKeyManager()"
    advice = "The payload is a delegate call. Use a call."


class ProfileBalanceTooLow(CallRefused):
    """The profile holds `balanceWei`, the payload sends `requiredWei` (`ERC725X_InsufficientBalance`)."""

    code, title = "profile-balance-too-low", "The profile has too little LYX"
    contract_error = "ERC725X_InsufficientBalance(uint256 balanceWei, uint256 requiredWei)"
    advice = "The payload sends more LYX than the profile holds. Relaying pays gas, never the amount."


class ProfileRefused(CallRefused):
    """
    The profile or its key manager refuses the payload with the contract error named in `reason`.

    `revertData` is the raw answer.
    """

    code, title = "profile-refused", "The profile refuses the call"


class TargetReverted(CallRefused):
    """The contract that the profile calls reverts; `reason` is its text, `revertData` the raw answer."""

    code, title = "target-reverted", "The called contract reverts"


# Further errors of the profile and the key manager themselves, all `ProfileRefused`; their names say enough.
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
