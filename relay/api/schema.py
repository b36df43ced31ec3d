"""Descriptions, errors and examples of the relay's paths in the OpenAPI document."""

from django.conf import settings
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from credits.errors import InsufficientCredits
from gateway.chain import errors as chain
from gateway.chain.fees import FeesTooHigh
from gateway.common import errors as common
from gateway.common.errors import DomainError
from gateway.common.problems import BODY_ERRORS, problem_responses
from relay import errors as relay_errors
from sponsors import errors as sponsors_errors
from users import errors as users_errors

_WITH_TOKEN: tuple[type[DomainError], ...] = (*BODY_ERRORS, common.NotAuthenticated)
CALL: tuple[type[DomainError], ...] = (
    InsufficientCredits,
    FeesTooHigh,
    *(refusal for refusal in common.all_errors() if refusal.__module__.startswith("gateway.chain.")),
    relay_errors.KeyManagerNotFound,
    relay_errors.ForeignKeyManager,
    relay_errors.KeyManagerNotOwner,
    users_errors.UntrustedCode,
    relay_errors.SignerNotController,
    relay_errors.RelayPermissionMissing,
    relay_errors.RelayNonceUsed,
    relay_errors.RelayNonceGap,
    relay_errors.RelayNonceTaken,
    relay_errors.ValidityTooShort,
    relay_errors.GasLimitExceeded,
    relay_errors.CallTooExpensive,
    relay_errors.ChannelBusy,
    relay_errors.RelayersBusy,
    relay_errors.RelayersEmpty,
    relay_errors.RelayShareUsed,
    relay_errors.TooManyCancelledCalls,
    relay_errors.RelayPaused,
    relay_errors.ChainTakesNoCalls,
    relay_errors.ChainPriceOutdated,
)

SPONSORED = (
    sponsors_errors.PolicyRefused,
    sponsors_errors.SponsorUnknown,
    sponsors_errors.SponsorFrozen,
    sponsors_errors.SponsorWithoutCredits,
    sponsors_errors.SponsorBudgetUsed,
    sponsors_errors.SponsorBusy,
)
EXECUTE = problem_responses(
    *_WITH_TOKEN,
    common.WrongChecksum,
    *CALL,
    *SPONSORED,
    relay_errors.NotYourProfile,
    relay_errors.QuoteNotFound,
    relay_errors.QuoteForOtherCall,
    relay_errors.QuoteUsed,
    relay_errors.QuoteExpired,
    relay_errors.QuoteOutdated,
)
PREPARE = problem_responses(
    *_WITH_TOKEN,
    common.WrongChecksum,
    chain.ChainUnknown,
    chain.NodeUnavailable,
    relay_errors.KeyManagerNotFound,
    relay_errors.RelayShareUsed,
    relay_errors.NotYourProfile,
)
QUOTA = problem_responses(
    *_WITH_TOKEN,
    common.WrongChecksum,
    chain.NodeUnavailable,
    chain.UnusableSignature,
    chain.UnrecoverableSignature,
    relay_errors.TimestampOutOfWindow,
    relay_errors.QuotaSignatureInvalid,
    users_errors.SignPermissionMissing,
    relay_errors.NotYourProfile,
)
STATUS = problem_responses(*_WITH_TOKEN, relay_errors.TransactionNotFound)
WAIT = problem_responses(common.InvalidRequest, common.NotAuthenticated, relay_errors.TransactionNotFound)
HASH_IN_PATH = OpenApiParameter(
    "transaction_hash",
    {"type": "string", "pattern": "^0x[0-9a-fA-F]{64}$"},
    OpenApiParameter.PATH,
    description="Any hash of the transaction, as returned by execute.",
)
_LSP15_EXECUTE: tuple[type[DomainError], ...] = (
    *BODY_ERRORS,
    common.WrongChecksum,
    *CALL,
    *SPONSORED,
    relay_errors.ProfileNotRegistered,
    relay_errors.CallFailedBefore,
)
LSP15_EXECUTE = problem_responses(*_LSP15_EXECUTE)
LSP15_CHAIN_EXECUTE = problem_responses(*_LSP15_EXECUTE, relay_errors.HomePermissionMissing)
_LSP15_QUOTA: tuple[type[DomainError], ...] = (
    *BODY_ERRORS,
    common.WrongChecksum,
    chain.NodeUnavailable,
    chain.UnusableSignature,
    chain.UnrecoverableSignature,
    relay_errors.TimestampOutOfWindow,
    relay_errors.QuotaSignatureInvalid,
    users_errors.SignPermissionMissing,
    relay_errors.ProfileNotRegistered,
)
LSP15_QUOTA = problem_responses(*_LSP15_QUOTA)
LSP15_CHAIN_QUOTA = problem_responses(*_LSP15_QUOTA, chain.ChainUnknown, FeesTooHigh)
CHAIN_IN_PATH = OpenApiParameter(
    "chain_id",
    {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"},
    OpenApiParameter.PATH,
    description="The id of the chain, such as 8453.",
)


EXECUTE_DESCRIPTION = f"""
Sends the signed call through the profile's key manager; the service pays the gas. Credits are held at once, and the
actual cost is charged when the chain has confirmed it.

Repeating a call is safe: it is charged once, so retry a request whose response was lost. The repeat returns the same
hash, or the hash of the replacement that was mined with other fees. `transactionStatus` accepts every hash of a call.
After `Failed`, `Cancelled` or `Expired`, a repeat is a new attempt. A nonce ahead of the key manager's is accepted
behind calls of the same channel that are in progress, at most {settings.RELAY_MAX_FOLLOWERS} of them.

With the header `Relay-Sponsor`, the named sponsor pays for the call if one of its policies fits. Otherwise the call is
refused, and `code` names the rule; with `Relay-Sponsor-Fallback: user`, the user pays. A call that the user cannot pay
is offered to the operator's default sponsor, if there is one; if it does not pay either, the response is 402.

With `chainId`, the call is executed on that chain, and its credits come from the same balance. The LSP-25 hash contains
the chain's id, so a call that was signed for one chain is refused on another.

`docs/signing.md` of the repository shows how to compute the hash.
""".strip()

LSP15_CHAIN_DESCRIPTION = """
The same as `/api/lsp15/execute`, for a call on this chain. Without a token, a signature on another chain does not show
that the account agrees, because a copy of the profile may still have controllers that the home chain has removed.
""".strip()

LSP15_CHAIN_QUOTA_DESCRIPTION = """
The gas that the available credits buy on this chain at its current fee. The controller needs SIGN on the home chain.
""".strip()

PREPARE_DESCRIPTION = """
Returns everything that a controller needs to sign a relay call: the key manager, the encoded call, the next nonce and
the hash. Sign `hash` as it is, add the signature to `transaction`, and send both with `keyManagerAddress` to execute.

No credits are held and nothing is sent. `refusals` has a problem document for each reason for which execute would
refuse the call now; the status is 200 nevertheless. The call is tried in parts, without its signature, so `highestCost`
is often a few percent above the hold of execute.

Members that this document does not have are refused, because a misspelt one would be signed without its effect.

With a `quote`, the call costs at most its `cost`, even if gas prices rise: send its `id` as the header `Relay-Quote` of
execute before `expiresAt`. A quote is valid for this call, once. Each quote reserves a part of the service's loss
budget, so prepare without one (`"quote": false`) where you only display a price.

With a `sponsor`, the response shows who would pay. Its quote decides who pays: execute with it needs no other header.
""".strip()

QUOTA_DESCRIPTION = """
`quota` is the number of credits available now: the balance minus the holds of calls in progress.

The message is signed by a controller with SIGN in one of these forms: the personal message of
`keccak256(address ‖ uint256(timestamp))` (LSP-15), the personal message of the text `address:timestamp`, or the bare
`keccak256(address ‖ uint256(timestamp))`.
""".strip()

STATUS_DESCRIPTION = """
`Pending` and `Submitted` are in progress; `creditsUsed` is then the expected cost. `Success`, `Failed` (reverted; the
gas used is charged), `Expired`, `Cancelled` and `ExecutedExternally` are final. Except after `Success`,
`failureCode` then has the reason and `failureDetail` a sentence about it.
""".strip()

WAIT_DESCRIPTION = """
Returns the same as `transactionStatus`. With `wait`, the response for a transaction in progress is delayed until its
status changes or the time is over. Repeat the request until the status is final; a final status is returned at once.

The number of waiting requests is limited per user (429 beyond) and in total (503 beyond).
""".strip()

_HASH = "0x5f0a4b5a6a0f4c0d7a1d5f4a7b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"
_PROFILE = "0xBB645D97B0c7D101ca0d73131e521fe89B463BFD"
_SIGNATURE = (
    "0x18583889e151ceef810217afba029fd1034860b1dc32a836def0d660c5e01e44"
    "7e9f9482d31e50081f9fe169972ac5f8f582dd91038963f8b6857a5b166302ec1b"
)
_TRANSACTION = {
    "abi": "0x44c028fe"
    "0000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000cacacacacacacacacacacacacacacacacacacaca"
    "0000000000000000000000000000000000000000000000000de0b6b3a7640000"
    "0000000000000000000000000000000000000000000000000000000000000080"
    "0000000000000000000000000000000000000000000000000000000000000000",
    "signature": _SIGNATURE,
    "nonce": "0",
}

EXECUTE_EXAMPLES = [
    OpenApiExample(
        "Send 1 LYX",
        request_only=True,
        value={
            "keyManagerAddress": "0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB",
            "transaction": _TRANSACTION,
        },
    ),
    OpenApiExample(
        "Channel 5, second call, valid until a time",
        request_only=True,
        value={
            "keyManagerAddress": "0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB",
            "transaction": {
                **_TRANSACTION,
                "nonce": "1701411834604692317316873037158841057281",
                "validityTimestamps": "0x6591f2700000000000000000000000006609eaf0",
            },
        },
    ),
    OpenApiExample("Accepted", response_only=True, status_codes=["200"], value={"transactionHash": _HASH}),
]
PREPARE_EXAMPLES = [
    OpenApiExample(
        "Send 1 LYX",
        request_only=True,
        value={
            "transaction": {
                "to": "0xcAcacaCacacACaCACaCaCACAcacAcaCACacAcAcA",
                "value": "1000000000000000000",
            }
        },
    ),
    OpenApiExample(
        "An encoded call, on channel 5",
        request_only=True,
        value={"transaction": {"abi": _TRANSACTION["abi"]}, "channel": 5},
    ),
    OpenApiExample(
        "To be signed",
        response_only=True,
        status_codes=["200"],
        value={
            "keyManagerAddress": "0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB",
            "transaction": {"abi": _TRANSACTION["abi"], "nonce": "0", "validityTimestamps": "1656411793"},
            "controller": "0xB8ac9a5bF0dA3Ea2DFD4B1d1D4dDD6E2B7a7c0d1",
            "hash": _HASH,
            "chainId": 42,
            "gasLimit": 154084,
            "expectedCost": 268,
            "highestCost": 463,
            "refusals": [],
            "quote": {
                "id": "0d9f7a54-5d1e-4f0c-9a35-1c2f6c6f7f0e",
                "cost": 463,
                "expiresAt": 1656408253,
            },
            "warnings": [],
            "quoteRefusal": None,
            "sponsor": None,
            "sponsorRefusal": None,
        },
    ),
]
LSP15_EXECUTE_EXAMPLES = [
    OpenApiExample("Send 1 LYX", request_only=True, value={"address": _PROFILE, "transaction": _TRANSACTION}),
    OpenApiExample("Accepted", response_only=True, status_codes=["200"], value={"transactionHash": _HASH}),
]
_QUOTA_REQUEST = OpenApiExample(
    "Signed as in LSP-15",
    request_only=True,
    value={
        "address": _PROFILE,
        "timestamp": 1656408193,
        "signature": "0xe376ded3190aa8442a83bd04e01d90887b5d2104a3fe6379c7914bde375e71fa"
        "71179da3add2dbe97ee9cfce68b99307d1c9d748fc32195218d10dc7dd7a715a1c",
    },
)
QUOTA_EXAMPLES = [
    _QUOTA_REQUEST,
    OpenApiExample(
        "Subscribed",
        response_only=True,
        status_codes=["200"],
        value={"quota": 24873, "unit": "credits", "totalQuota": 25500, "resetDate": 1659000193},
    ),
    OpenApiExample(
        "Not subscribed",
        response_only=True,
        status_codes=["200"],
        value={"quota": 120, "unit": "credits", "totalQuota": 0, "resetDate": -1},
    ),
]
LSP15_QUOTA_EXAMPLES = [
    _QUOTA_REQUEST,
    OpenApiExample(
        "Subscribed",
        response_only=True,
        status_codes=["200"],
        value={"quota": 24873000, "unit": "gas", "totalQuota": 25500000, "resetDate": 1659000193},
    ),
    OpenApiExample(
        "Not subscribed",
        response_only=True,
        status_codes=["200"],
        value={"quota": 120000, "unit": "gas"},
    ),
]
STATUS_EXAMPLES = [
    OpenApiExample("By hash", request_only=True, value={"transactionHash": _HASH}),
    OpenApiExample(
        "Settled",
        response_only=True,
        status_codes=["200"],
        value={
            "status": "Success",
            "transactionSenderAddress": _PROFILE,
            "creditsUsed": 127,
            "creditsBefore": 25000,
            "creditsAfter": 24873,
            "failureCode": "",
            "failureDetail": "",
            "paidBy": "user",
            "chainId": 42,
        },
    ),
    OpenApiExample(
        "Failed",
        response_only=True,
        status_codes=["200"],
        value={
            "status": "Failed",
            "transactionSenderAddress": _PROFILE,
            "creditsUsed": 127,
            "creditsBefore": 25000,
            "creditsAfter": 24873,
            "failureCode": "not-authorised",
            "failureDetail": "The controller needs the permission TRANSFERVALUE.",
            "paidBy": "user",
            "chainId": 42,
        },
    ),
]
