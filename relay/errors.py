"""The errors of relay calls, quota and status requests. Their docstrings are the public catalogue of problems."""

from gateway.common.errors import DomainError


class KeyManagerNotFound(DomainError):
    """`keyManagerAddress` is not an LSP-6 key manager. Read the address from the profile's `owner()`."""

    code, title, status = "key-manager-not-found", "No key manager at this address", 422


class ForeignKeyManager(DomainError):
    """The key manager controls another profile, `target`. Sign in with that profile."""

    code, title, status = "key-manager-of-another-profile", "The key manager controls another profile", 403


class KeyManagerNotOwner(DomainError):
    """The key manager's target is the profile, but the profile's `owner()` is another contract. Send that `owner`."""

    code, title, status = "key-manager-not-owner", "The profile is not owned by this key manager", 403


class SignerNotController(DomainError):
    """
    The signer, `recovered`, has no permissions on the profile, and no known signing mistake explains the signature.

    Compare the hash that was signed with `hash`, the LSP-25 hash of this request. If they differ, compare what it is
    made of: chain id, key manager, nonce with its channel, validity timestamps and payload. `prepare` gives no
    `hash` here, because nothing is signed yet.
    """

    code, title, status = "signer-not-a-controller", "The signer is not a controller of the profile", 403


class RelayPermissionMissing(DomainError):
    """The signature is valid, but the `controller` lacks EXECUTE_RELAY_CALL. Grant this permission on the profile."""

    code, title, status = "relay-permission-missing", "The controller may not use relayers", 403


class RelayNonceUsed(DomainError):
    """The key manager has already used this nonce. Sign again with `expectedNonce`."""

    code, title, status = "relay-nonce-used", "The nonce has been used", 409


class RelayNonceGap(DomainError):
    """An earlier nonce of the channel is neither executed nor in progress. Send `expectedNonce` first."""

    code, title, status = "relay-nonce-gap", "An earlier nonce is missing", 409


class RelayNonceTaken(DomainError):
    """Another call with the same key manager, controller and `nonce` is in progress. Use the next nonce."""

    code, title, status = "relay-nonce-taken", "Another call uses this nonce", 409

    def __init__(self, *, nonce: int) -> None:
        super().__init__(
            f"Another call with nonce {nonce} is in progress or executed. Sign the next nonce.",
            nonce=str(nonce),
        )


class CreationOff(DomainError):
    """The operator of the service has switched the creation of profiles off."""

    code, title, status = "profile-creation-off", "The service creates no profiles", 403


class DeploymentRefused(DomainError):
    """
    The chain's factory would refuse the deployment, is missing, or would need more gas than `maximum`.

    Nothing was sent. With a salt and data of your own, compare them with those of LSP-23.
    """

    code, title, status = "deployment-refused", "The profile cannot be deployed", 422


class CreationKeyUsed(DomainError):
    """The `Idempotency-Key` was used for another profile. Use a new key for each profile."""

    code, title, status = "creation-key-used", "The key was used for another profile", 409


class CopyAtHome(DomainError):
    """The profile exists on the home chain (`homeChainId`). Name another chain as `chainId`."""

    code, title, status = "copy-at-home", "The home chain has the profile already", 422


class FirstDeploymentUnknown(DomainError):
    """
    The service does not know with which data the profile was deployed first, or the data that were sent are others.

    Send `salt` and `postDeploymentCallData` of the first deployment. A wallet keeps them in the profile's backup
    (LSP-30), and the event `DeployedERC1167Proxies` of LSP-23's factory on the home chain has them.
    """

    code, title, status = "first-deployment-unknown", "The first deployment is not known", 422


class CopyUnsafe(DomainError):
    """
    The copy would belong to first `controllers` that the home chain has removed, or nobody could change it.

    A copy begins with the controllers of the first deployment. Here no other one may remove them in the same
    transaction, or the chain lacks the contract for it. Give them their permissions at home again if you trust them;
    otherwise use no copy.
    """

    code, title, status = "copy-unsafe", "The copy would belong to removed controllers", 409


class CopyNeedsRemoval(DomainError):
    """
    The home chain has taken permissions from controllers that the copy would have: their removal must be signed.

    `removal` has each of them with the permissions that it keeps on the copy. One of the `signers` signs `payload` for
    `keyManagerAddress` on the chain of the copy, as a relay call (LSP-25) with nonce 0 and validity timestamps 0. Send
    the signature as `removalSignature`. The copy and the removal are one transaction. If a signature was sent, it is
    another's, or the home chain has changed meanwhile.
    """

    code, title, status = "copy-needs-removal", "Removed controllers would have the copy", 409


class CopyTaken(DomainError):
    """
    The copy exists, with controllers that have permissions there that the home chain has taken from them.

    Whoever deploys a copy, it begins with the first controllers. `removal` has those with too many permissions, and
    which of them they should keep. Send `payload` through `keyManagerAddress` there, as a relay call of a controller
    that may edit permissions, before the removed ones act. Until then keep nothing on it.
    """

    code, title, status = "copy-taken", "Removed controllers have the copy", 409


class OriginMissing(DomainError):
    """The sponsor's policy limits new profiles by origin. Send `origin`, which stands for the person."""

    code, title, status = "sponsor-origin-missing", "The sponsor wants to know the origin", 403


class OriginUsed(DomainError):
    """The sponsor pays for `limit` new profiles of an origin in a UTC day, and has done so. Retry on the next day."""

    code, title, status, retryable = (
        "sponsor-limit-origin",
        "No more profiles for this origin today",
        429,
        True,
    )


class ProfileNotRequested(DomainError):
    """The sponsor has not requested a profile of this address."""

    code, title, status = "profile-not-requested", "No such profile of the sponsor", 404


class ProfileNotThere(DomainError):
    """There is no Universal Profile with a key manager at this address on the home chain."""

    code, title, status = "profile-not-there", "No profile at this address", 422


class RegistrationsUsed(DomainError):
    """The sponsor has registered as many profiles in 24 hours as the operator allows, `limit`."""

    code, title, status, retryable = "registrations-used", "No more registrations today", 429, True


class ValidityTooShort(DomainError):
    """
    The call expires before it could be mined. Sign with a later end, at least `minimumSeconds` from now.

    `validUntil` is the signed end and `serverTime` the service's time, both in unix seconds.
    """

    code, title, status = "validity-too-short", "The call would expire before it is mined", 422


class GasLimitExceeded(DomainError):
    """
    The call needs a gas limit of `gasLimit` or more; the service relays at most `maximum`. Split the call.

    A deployment needs about 200 gas for each byte of code, `setData` about 700 for each byte that it stores first.
    """

    code, title, status = "gas-limit-exceeded", "The call needs too much gas", 422


class CallTooExpensive(DomainError):
    """
    The call may cost `highestCost` credits; the operator allows `maximumCost` for a call on this chain, `chainId`.

    Split the call, send it when gas is cheaper, or send it on another chain. Preparing a call shows its cost before.
    """

    code, title, status = "call-too-expensive", "The call costs too much", 422


class ChannelBusy(DomainError):
    """
    The channel already has `maximumFollowers` calls waiting behind its first one, which is the maximum.

    Retry after `Retry-After`, or use another channel.
    """

    code, title, status, retryable = "channel-busy", "The channel is full", 503, True


class RelayersBusy(DomainError):
    """No relayer can take the call right now. No credits were held; retry after `Retry-After`."""

    code, title, status, retryable = "relayers-busy", "All relayers are busy", 503, True


class RelayersEmpty(DomainError):
    """
    No relayer has the funds that the call may cost. No credits were held; the operator must send LYX.

    Retry after `Retry-After`.
    """

    code, title, status, retryable = "relayers-empty", "All relayers are empty", 503, True


class NoSpareRelayer(DomainError):
    """The signer has no spare key for another relayer."""

    code, title, status = "no-spare-relayer", "No spare key", 409


class RelayShareUsed(DomainError):
    """
    The profile has `maximum` calls in flight or reading from the chain, its current limit. No credits were held; retry
    after `Retry-After`.

    The limit falls when other profiles relay more and when calls of this profile end without effect.
    """

    code, title, status, retryable = "relay-share-used", "Too many of your calls are in flight", 503, True


class TooManyCancelledCalls(DomainError):
    """
    Too many calls of the profile ended without effect: reverted, expired, behind a failed call, executed elsewhere.

    At most `maximum` such calls are allowed within `windowSeconds`. No credits were held. Send calls that execute in
    the current state of the chain, valid for minutes at least, and retry after `Retry-After`.
    """

    code, title, status, retryable = (
        "too-many-cancelled-calls",
        "Too many calls ended without effect",
        429,
        True,
    )


class CallFailedBefore(DomainError):
    """
    This call has failed on chain (`maximum` times), so its signature is public and a third party could resubmit it at
    your cost.

    No credits were held. Sign in to retry it (`/api/relay/execute`), or sign a new call with another nonce or other
    validity timestamps.
    """

    code, title, status = "call-failed-before", "The call has failed before", 409


class NotYourProfile(DomainError):
    """The address in the body differs from the signed-in profile, `profile`. Send that, or sign in with the other."""

    code, title, status = "not-your-profile", "Not your profile", 403


class TimestampOutOfWindow(DomainError):
    """`timestamp` is more than 5 seconds from the service's clock. Compare with `serverTime` and sign again."""

    code, title, status = "timestamp-out-of-window", "The timestamp is too far from now", 401


class QuotaSignatureInvalid(DomainError):
    """
    The signature recovers no controller of the profile in any accepted form of the quota message.

    Sign the address and the timestamp of this request by `personal_sign`, with a controller that has SIGN.
    """

    code, title, status = "quota-signature-invalid", "The signature is not from a controller", 401


class TransactionNotFound(DomainError):
    """The signed-in profile has no relay transaction with this hash. Send one that `execute` returned to it."""

    code, title, status = "transaction-not-found", "No such transaction", 404


class ProfileNotRegistered(DomainError):
    """The `profile` has never signed in to this service, so it has no credits. Sign in once with the wallet."""

    code, title, status = "profile-not-registered", "The profile is not registered", 404


class RelayPaused(DomainError):
    """Staff have paused the relay. No credits were held; accepted calls continue. Retry after `Retry-After`."""

    code, title, status, retryable = "relay-paused", "The relay is paused", 503, True

    def __init__(self, detail: str = "New calls are not accepted at the moment. Retry later.") -> None:
        super().__init__(detail, retry_after=300)


class ChainTakesNoCalls(DomainError):
    """
    The operator takes no new calls on this chain, `chainId`, for now. Accepted calls continue, and so do other chains.

    Retry after `Retry-After`. `GET /api/service` shows the state of each chain.
    """

    code, title, status, retryable = "chain-takes-no-calls", "The chain takes no calls now", 503, True


class ChainPriceOutdated(DomainError):
    """
    The price of a credit on this chain, `chainId`, is too old, or too far from the recorded rate of the chain's coin.

    The operator has been alerted, and other chains take calls. Retry after `Retry-After`.
    """

    code, title, status = "chain-price-outdated", "The chain's price is outdated", 503
    retryable = True


class PaidCreditsNeeded(DomainError):
    """
    On this chain, `chainId`, only credits from purchases and subscriptions pay for calls.

    `required` credits are needed, and `available` of those that were paid for are left: credits from check-ins, ads and
    cashback, and debt, do not count. Buy credits, or send the call to the home chain.
    """

    code, title, status = "paid-credits-needed", "The chain needs credits that were paid for", 402


class HomePermissionMissing(DomainError):
    """
    Without a token, a call on another chain needs a `controller` that may relay the same call on the home chain.

    A copy of a profile on another chain may have controllers that the home chain has removed, so its permissions do not
    show that the account agrees. Give the controller EXECUTE_RELAY_CALL on the home chain (`homeChainId`), with allowed
    calls that include this call; or sign in, and send the call with a token to `/api/relay/execute`.
    """

    code, title, status = "home-permission-missing", "The home chain does not permit this call", 403


class QuoteUnavailable(DomainError):
    """
    No quote is available for this call now. Send the call without a quote; its cost may then rise with the fees.

    The service limits its possible loss from quotes, per profile and in total.
    """

    code, title, status, retryable = "quote-unavailable", "No quote available", 503, True


class QuoteNotFound(DomainError):
    """`Relay-Quote` names no quote of the signed-in profile, or one that expired long ago. Prepare the call again."""

    code, title, status = "quote-not-found", "Quote not found", 409


class QuoteForOtherCall(DomainError):
    """The quote was issued for the call with hash `hash`, and another call was signed. Prepare the signed call."""

    code, title, status = "quote-for-other-call", "The quote is for another call", 409


class QuoteUsed(DomainError):
    """A call was already accepted with this quote. Prepare the call again, or send it without a quote."""

    code, title, status = "quote-used", "The quote has been used", 409


class QuoteExpired(DomainError):
    """The quote was valid until `expiredAt`, in unix seconds. Prepare the call again, or send it without a quote."""

    code, title, status = "quote-expired", "The quote has expired", 409


class QuoteOutdated(DomainError):
    """The call now needs more gas, `gasLimit`, than the quote covers, `quotedGasLimit`. Prepare the call again."""

    code, title, status = "quote-outdated", "The call needs more gas than quoted", 409


class HoldNotOrphaned(DomainError):
    """Staff can release only orphaned holds. Wait until the hold's call has ended."""

    code, title, status = "hold-not-orphaned", "The hold is not orphaned", 409


class LossLimitReached(DomainError):
    """The service has reached its hourly loss limit, so it pays for no self-transfer now. Retry later."""

    code, title, status, retryable = "loss-limit-reached", "The loss limit has been reached", 503, True

    def __init__(self) -> None:
        super().__init__("The service has reached its hourly loss limit.", retry_after=300)


class AlreadyBroadcast(DomainError):
    """Staff can cancel only calls that were never broadcast. This call was broadcast, or has ended."""

    code, title, status = "already-broadcast", "The call can no longer be cancelled", 409

    def __init__(self) -> None:
        super().__init__("The call was broadcast, or it has ended. Its outcome is decided on chain.")
