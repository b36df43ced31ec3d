"""The errors of relay calls, quota and status requests. Their docstrings are the public catalogue of problems."""

from gateway.common.errors import DomainError


class KeyManagerNotFound(DomainError):
    """There is no LSP-6 key manager at `keyManagerAddress`. Read it from the profile's `owner()`."""

    code, title, status = "key-manager-not-found", "No key manager at this address", 422


class ForeignKeyManager(DomainError):
    """The key manager controls another profile than the signed-in one. It is `target`; sign in with that one."""

    code, title, status = "key-manager-of-another-profile", "The key manager controls another profile", 403


class KeyManagerNotOwner(DomainError):
    """The contract claims the profile, but the profile's `owner()` is another contract. Send that `owner`."""

    code, title, status = "key-manager-not-owner", "The profile is not owned by this key manager", 403


class SignerNotController(DomainError):
    """
    The signer, `recovered`, holds no permission on the profile, and no known signing mistake explains it.

    Check chain id, key manager, nonce, validity and payload: all of them are part of the signed hash.
    """

    code, title, status = "signer-not-a-controller", "The signer is no controller of the profile", 403


class RelayPermissionMissing(DomainError):
    """The `controller` signed well but lacks EXECUTE_RELAY_CALL. Grant it on the profile."""

    code, title, status = "relay-permission-missing", "The controller may not use relayers", 403


class RelayNonceUsed(DomainError):
    """The key manager has already used this nonce. Sign again with `expectedNonce`."""

    code, title, status = "relay-nonce-used", "The nonce is used up", 409


class RelayNonceGap(DomainError):
    """A nonce before this one is neither executed nor in progress here. Send `expectedNonce` first."""

    code, title, status = "relay-nonce-gap", "A preceding nonce is missing", 409


class RelayNonceTaken(DomainError):
    """Another call with the same key manager, controller and `nonce` is in progress. Use the next nonce."""

    code, title, status = "relay-nonce-taken", "Another call holds this nonce", 409

    def __init__(self, *, nonce: int) -> None:
        super().__init__(f"Another call with nonce {nonce} is in progress or executed.", nonce=str(nonce))


class ValidityTooShort(DomainError):
    """
    The call's validity ends before it could be mined. Sign with a later end, at least `minimumSeconds` from now.

    `validUntil` is the end that was signed, and `serverTime` the time that it was compared with, in unix seconds.
    """

    code, title, status = "validity-too-short", "The call would expire before it is mined", 422


class GasLimitExceeded(DomainError):
    """The call needs more gas, `gasLimit`, than the service relays in one transaction, `maximum`. Split it."""

    code, title, status = "gas-limit-exceeded", "The call needs too much gas", 422


class ChannelBusy(DomainError):
    """
    As many calls of the channel, `maximumFollowers`, wait behind its first one as may.

    Repeat after `Retry-After`, or use another channel.
    """

    code, title, status, retryable = "channel-busy", "The channel is full", 503, True


class RelayersBusy(DomainError):
    """No sending account can take the call right now. Nothing was held; repeat after `Retry-After`."""

    code, title, status, retryable = "relayers-busy", "All relayers are busy", 503, True


class NoSpareRelayer(DomainError):
    """The service has no further key for a relayer."""

    code, title, status = "no-spare-relayer", "No further key", 409


class RelayShareUsed(DomainError):
    """
    As many calls of the profile wait to be mined as may: `maximum`. Nothing was held; repeat after `Retry-After`.

    The more other profiles relay, and the more calls of this one have ended without effect lately, the fewer may wait.
    """

    code, title, status, retryable = "relay-share-used", "Too many of your calls wait to be mined", 503, True


class TooManyCancelledCalls(DomainError):
    """
    Too many calls of the profile ended without effect: reverted, expired, behind one that failed, executed elsewhere.

    Within `windowSeconds` there may be `maximum` of them. Nothing was held. Sign for what the chain executes now, with
    a validity of minutes, and repeat after `Retry-After`.
    """

    code, title, status, retryable = (
        "too-many-cancelled-calls",
        "Too many calls ended without effect",
        429,
        True,
    )


class CallFailedBefore(DomainError):
    """
    This very call has failed on chain (`maximum` times), so anybody can read its signature there and hand it in again
    at your cost.

    Nothing was held. Sign in to try it again (`/api/relay/execute`), or sign a new call: another nonce, or other
    validity timestamps.
    """

    code, title, status = "call-failed-before", "The call has failed before", 409


class NotYourProfile(DomainError):
    """The address in the body is not the signed-in profile, which is `profile`."""

    code, title, status = "not-your-profile", "This is another profile", 403


class TimestampOutOfWindow(DomainError):
    """`timestamp` is more than 5 seconds from the service's clock. Compare with `serverTime` and sign again."""

    code, title, status = "timestamp-out-of-window", "The timestamp is too far from now", 401


class QuotaSignatureInvalid(DomainError):
    """No accepted form of the quota message recovers a controller of the profile from this signature."""

    code, title, status = "quota-signature-invalid", "The signature is not a controller's", 401


class TransactionNotFound(DomainError):
    """The signed-in profile has no relay transaction with this hash."""

    code, title, status = "transaction-not-found", "No such transaction", 404


class ProfileNotRegistered(DomainError):
    """The `profile` has never signed in here, so it has no credits. Sign in once with the wallet."""

    code, title, status = "profile-not-registered", "The profile is not registered", 404


class RelayPaused(DomainError):
    """Staff have paused the relay. Nothing was held; calls accepted before go on. Repeat after `Retry-After`."""

    code, title, status, retryable = "relay-paused", "The relay is paused", 503, True

    def __init__(self, detail: str = "New calls are not accepted for now. Repeat later.") -> None:
        super().__init__(detail, retry_after=300)


class QuoteUnavailable(DomainError):
    """
    There is no quote for this call now. It can be sent without one; fees may then rise before it is accepted.

    What the service may lose by quotes is bounded, for each profile and for all.
    """

    code, title, status, retryable = "quote-unavailable", "No quote can be given now", 503, True


class QuoteNotFound(DomainError):
    """`Relay-Quote` names no quote of the signed-in profile, or one that expired long ago. Prepare the call again."""

    code, title, status = "quote-not-found", "No such quote", 409


class QuoteForOtherCall(DomainError):
    """The quote is for the call whose `hash` is told, and the signature is for another one. Prepare this call."""

    code, title, status = "quote-for-other-call", "The quote is for another call", 409


class QuoteUsed(DomainError):
    """A call was accepted with this quote, which is good for one. Prepare the call again, or send it without one."""

    code, title, status = "quote-used", "The quote is used up", 409


class QuoteExpired(DomainError):
    """The quote was good until `expiredAt`, in unix seconds. Prepare the call again, or send it without a quote."""

    code, title, status = "quote-expired", "The quote has expired", 409


class QuoteOutdated(DomainError):
    """The call needs more gas now, `gasLimit`, than when it was quoted, `quotedGasLimit`. Prepare the call again."""

    code, title, status = "quote-outdated", "The call needs more gas than quoted", 409


class HoldNotOrphaned(DomainError):
    """Only a hold that nothing can close any more is released by hand; wait for its call to end."""

    code, title, status = "hold-not-orphaned", "The hold is not orphaned", 409


class LossLimitReached(DomainError):
    """The service may lose no more gas within this hour, so it pays for no self-transfer now; repeat later."""

    code, title, status, retryable = "loss-limit-reached", "The service may lose no more gas now", 503, True

    def __init__(self) -> None:
        super().__init__("What the service may lose within an hour is used up.", retry_after=300)


class AlreadyBroadcast(DomainError):
    """Only a call that is signed and was never broadcast is cancelled by hand; this one was, or has ended."""

    code, title, status = "already-broadcast", "It cannot be cancelled any more", 409

    def __init__(self) -> None:
        super().__init__(
            "It was broadcast, or it is ended or about to end. The chain decides what becomes of it."
        )
