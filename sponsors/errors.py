"""The errors of sponsored calls. Their docstrings are the public catalogue of problems."""

from typing import ClassVar

from gateway.common.errors import DomainError


class PolicyRefused(DomainError):
    """
    No policy of the sponsor pays for the call.

    `policies` has, for each policy in order, the rule that refused the call (`code`, `detail`), the rule's `limit`, how
    much of it is `used`, when it `resets`, and what `fits`. The problem is that of the policy that passed most rules.
    """

    # After how many seconds a retry may succeed, where this is known.
    retry_seconds: ClassVar[int | None] = None


class NoPolicy(PolicyRefused):
    """The sponsor has no policy in force."""

    code, title, status = "sponsor-no-policy", "The sponsor pays for no calls", 403


class PurposeNotSponsored(PolicyRefused):
    """The policy pays for calls only, or for new profiles only."""

    code, title, status = "sponsor-purpose", "The sponsor does not pay for this", 403


class ChainNotSponsored(PolicyRefused):
    """The policy pays for calls on another chain. Send the call there, or ask the sponsor for a policy for this one."""

    code, title, status = "sponsor-chain", "The sponsor does not pay on this chain", 403


class TargetNotSponsored(PolicyRefused):
    """The call reaches a contract or a function that the policy does not list, perhaps inside a batch."""

    code, title, status = "sponsor-target", "The sponsor does not pay for this contract or function", 403


class PayloadUnreadable(PolicyRefused):
    """Part of the payload does not decode, so the policy cannot tell which contracts the call reaches."""

    code, title, status = "sponsor-unreadable", "The sponsor cannot read the call", 403


class ProfileNotSponsored(PolicyRefused):
    """The policy pays for other profiles only: listed ones, or new ones."""

    code, title, status = "sponsor-profile", "The sponsor does not pay for this profile", 403


class VoucherMissing(PolicyRefused):
    """The policy pays only for calls with a voucher for it. Ask the sponsor's server for a voucher."""

    code, title, status = "sponsor-voucher-missing", "The sponsor requires a voucher", 403


class NotHolding(PolicyRefused):
    """
    The profile does not have what the policy requires on the chain: a token balance, or a follow (LSP-26).

    `fits` is the token's or the other profile's address, `limit` the lowest balance.
    """

    code, title, status = "sponsor-holding", "The sponsor requires a token or a follow", 403


class HoldingUnknown(PolicyRefused):
    """The policy pays for profiles with a token or a follow, and the chain cannot be read now. Retry."""

    code, title, status = "sponsor-holding-unknown", "The profile's token or follow cannot be read", 503
    retryable = True
    retry_seconds = 10


class VerifierRefused(PolicyRefused):
    """The sponsor's own server responded that it does not pay for this call."""

    code, title, status = "sponsor-verifier", "The sponsor does not pay for this call", 403


class VerifierUnknown(PolicyRefused):
    """The sponsor's own server decides about this call, but gave no valid response in time. Retry."""

    code, title, status = "sponsor-verifier-unknown", "The sponsor's server does not respond", 503
    retryable = True
    retry_seconds = 10


class VerifierLimit(PolicyRefused):
    """The sponsor's part of this call exceeds the maximum that the sponsor's own server set for it."""

    code, title, status = (
        "sponsor-limit-verifier",
        "The call costs more than the sponsor's server allows",
        402,
    )


class SponsoringNotStarted(PolicyRefused):
    """The policy does not pay before `resets`."""

    code, title, status = "sponsor-not-started", "The sponsor does not pay yet", 403


class SponsoringEnded(PolicyRefused):
    """The policy paid until `limit`."""

    code, title, status = "sponsor-ended", "The sponsor no longer pays", 403


class GasPriceTooHigh(PolicyRefused):
    """The gas price, `used`, is above the policy's ceiling, `limit`, in wei. Try again later."""

    code, title, status = "sponsor-gas-price", "The sponsor does not pay this gas price", 403


class CallLimit(PolicyRefused):
    """The sponsor's part of this call exceeds the policy's limit per call."""

    code, title, status = "sponsor-limit-call", "The call costs more than the sponsor pays", 402


class VoucherLimit(PolicyRefused):
    """The sponsor's part of this call exceeds the maximum in the voucher."""

    code, title, status = "sponsor-limit-voucher", "The call costs more than the voucher allows", 402


class UserDayLimit(PolicyRefused):
    """The policy's credits for this profile are used up until midnight UTC."""

    code, title, status = (
        "sponsor-limit-user-day",
        "The sponsor's daily credits for the profile are used up",
        402,
    )


class UserTotalLimit(PolicyRefused):
    """The policy's credits for this profile are used up."""

    code, title, status = "sponsor-limit-user-total", "The sponsor's credits for the profile are used up", 402


class UserCallsLimit(PolicyRefused):
    """The policy has paid for as many calls of this profile as it allows."""

    code, title, status = "sponsor-limit-user-calls", "The sponsor's calls for the profile are used up", 402


class WindowLimit(PolicyRefused):
    """The policy's credits for this time window, shared by all profiles, are used up."""

    code, title, status = (
        "sponsor-limit-window",
        "The sponsor's credits for this time window are used up",
        402,
    )


class WindowCallsLimit(PolicyRefused):
    """The number of calls or new profiles that the policy pays for in a period is used up. Retry at `resets`."""

    code, title, status = "sponsor-limit-window-calls", "The sponsor's number for now is used up", 402


class CampaignCallsLimit(PolicyRefused):
    """The number of calls or new profiles that the policy pays for in all is used up."""

    code, title, status = "sponsor-limit-campaign-calls", "The sponsor's number is used up", 402


class CampaignLimit(PolicyRefused):
    """The policy's total credits are used up."""

    code, title, status = "sponsor-limit-campaign", "The sponsor's campaign credits are used up", 402


class VoucherRefused(PolicyRefused):
    """
    The voucher is not signed by this sponsor for this profile and chain, or its deadline has passed.

    `reason` names the fault: `form`, `range`, `sponsor`, `profile`, `deadline`, `signature` or `signer`.
    """

    code, title, status = "sponsor-voucher", "The voucher is not valid", 403


class VoucherUsed(PolicyRefused):
    """Another call has used the voucher with this `id`. Ask the sponsor's server for a new one."""

    code, title, status = "sponsor-voucher-used", "The voucher has been used", 409


class SponsorUnknown(DomainError):
    """No sponsor has this name. Ask the sponsor for the name, or send the call without one."""

    code, title, status = "sponsor-unknown", "No sponsor has this name", 403


class SponsorFrozen(DomainError):
    """The `sponsor` is frozen, or its policy is switched off. Send the call without the sponsor, or retry later."""

    code, title, status = "sponsor-frozen", "The sponsor does not pay at the moment", 403


class SponsorWithoutCredits(DomainError):
    """The `sponsor` has too few credits for this call. Send the call without the sponsor, or retry later."""

    code, title, status = "sponsor-without-credits", "The sponsor has too few credits", 402


class SponsorBudgetUsed(DomainError):
    """
    The budget of the `sponsor` for this `period`, a UTC day or month, does not have the credits.

    `limit`, `used` and `fits` are in credits. It starts again at `resets`. The operator can raise it.
    """

    code, title, status = "sponsor-budget", "The sponsor's budget is used up", 402


class SponsorBusy(DomainError):
    """The sponsor's policies or their usage changed at the same moment. The call was not accepted; retry."""

    code, title, status, retryable = "sponsor-busy", "The sponsor's policies are changing", 503, True


class MemberUnknown(DomainError):
    """The profile has no account here, or is not a member. People must sign in once before they can become members."""

    code, title, status = "sponsor-member-unknown", "No such member", 404


class MailUnavailable(DomainError):
    """The operator has not set up a mail server. Add members by their profiles instead."""

    code, title, status = "sponsor-no-mail", "This service sends no e-mail", 409


class MailFailed(DomainError):
    """The mail server did not accept the invitation. Invite the member again."""

    code, title, status, retryable = "sponsor-mail-failed", "The e-mail could not be sent", 503, True


class InvitationClosed(DomainError):
    """The link or the code is wrong, used, or expired. Ask an owner of the sponsor to invite you again."""

    code, title, status = "sponsor-invitation", "The invitation is not valid", 403


class SignInRefused(DomainError):
    """The sponsor's name, the e-mail address, the password or the code is wrong."""

    code, title, status = "sponsor-sign-in", "The sign-in is refused", 401


class MemberSessionEnded(DomainError):
    """The session of a member without a profile has ended, or the member was removed. Sign in again."""

    code, title, status = "sponsor-session-ended", "The session has ended", 401


class LastOwner(DomainError):
    """This member is the only owner. Make another member an owner first."""

    code, title, status = "sponsor-last-owner", "A sponsor needs an owner", 409


class KeyRefused(DomainError):
    """The API key is unknown, has expired, or was revoked."""

    code, title, status = "sponsor-key", "The key is not valid", 401


class KeyNetworkRefused(DomainError):
    """The API key is not accepted from the caller's network address, `address`."""

    code, title, status = "sponsor-key-network", "The key is not accepted from here", 403


class TooManyKeys(DomainError):
    """The sponsor has the maximum number of API keys. Revoke one first."""

    code, title, status = "sponsor-too-many-keys", "Too many keys", 409


class SelfServiceOff(DomainError):
    """On this service only the operator opens sponsors. Ask the operator to open one for you."""

    code, title, status = "sponsor-self-service-off", "Sponsors are opened by the operator", 403


class TooManySponsors(DomainError):
    """The profile has opened as many sponsors as it may, `limit`. Ask the operator for another one."""

    code, title, status = "sponsor-too-many", "Too many sponsors", 409


class OpeningsUsed(DomainError):
    """As many sponsors were opened in 24 hours as the operator allows. Open yours later."""

    code, title, status, retryable = "sponsor-openings-used", "No more sponsors today", 429, True


class SponsorNameTaken(DomainError):
    """A sponsor with this name exists. Choose another name."""

    code, title, status = "sponsor-name-taken", "The name is taken", 409


class StaffDecide(DomainError):
    """The sponsor has no budget, so two members of the operator's staff decide about its policies and signers."""

    code, title, status = "sponsor-staff-decide", "The operator decides about these policies", 409


class TermsRefused(DomainError):
    """The terms of the policy contradict each other, or exceed a maximum; `detail` names it."""

    code, title, status = "sponsor-terms", "The terms are not possible", 422
