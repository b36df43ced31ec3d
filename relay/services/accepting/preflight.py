"""
Check everything about a relay call that can be checked before credits are held.

The rows and the chain were read before, for several calls together. Most calls need no further node request. A call
that reverts does, as do one ahead of its channel, a gas limit that did not fit, an unknown signer (to find the signing
mistake), and the key manager of a pending owner. These checks write no row and open no transaction.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from django.conf import settings

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain, home
from gateway.chain.contracts import ACCEPT_OWNERSHIP, refusal_from_revert
from gateway.chain.errors import (
    CallReverted,
    ProfileRefused,
    RelayCallExpired,
    RelayCallNotYetValid,
    TargetReverted,
)
from gateway.chain.fees import Fees
from gateway.chain.lsp6 import Permission
from gateway.chain.lsp25 import RelayCall, wrong_hashes
from gateway.chain.signatures import recover_address
from gateway.chain.types import Head, RelayState
from gateway.common.errors import DomainError
from relay.errors import (
    CallTooExpensive,
    ChainPriceOutdated,
    ChainTakesNoCalls,
    ForeignKeyManager,
    GasLimitExceeded,
    KeyManagerNotFound,
    KeyManagerNotOwner,
    NotYourProfile,
    RelayNonceUsed,
    RelayPermissionMissing,
    SignerNotController,
    ValidityTooShort,
)
from relay.queries import prices
from relay.services.accepting import gas_limits
from relay.services.accepting.calls import Approval, SubmittedCall
from users.errors import UntrustedCode
from users.queries import are_trusted
from users.services.trusted_code import trusts, trusts_any_code

# A larger part of a block rarely finds room in one.
_SHARE_OF_BLOCK = 4
_CLOSED_RETRY_SECONDS = 300
# Times from this number on are taken as milliseconds: as seconds, it is the year 5138; as milliseconds, 1973.
MILLISECONDS_FROM = 10**11


def check_chain() -> None:
    """
    Refuse new calls while the current chain takes none.

    Raises:
        ChainTakesNoCalls: the operator has switched the chain's calls off.
        ChainPriceOutdated: its price of a credit is too old, or too far from the rate of its coin.
    """
    chain = get_chain()
    if not chain.takes_calls:
        raise ChainTakesNoCalls(
            f"{chain.name} takes no new calls at the moment. Retry later.",
            retry_after=_CLOSED_RETRY_SECONDS,
            chainId=chain.id,
        )
    use = prices.watch.use_of(chain)
    if not use.is_within:
        why = "is too old" if use.is_too_old else f"is too far from the recorded rate of {chain.currency}"
        raise ChainPriceOutdated(
            f"The price of a credit on {chain.name} {why}, so it takes no calls. Retry later.",
            retry_after=_CLOSED_RETRY_SECONDS,
            chainId=chain.id,
        )


def approve(call: SubmittedCall, *, may_ask: bool) -> Approval | None:
    """
    Check that the call is for the profile, correctly signed, permitted, valid now, in order and executable.

    Its rows and chain state were read. Returns None if another node read is needed and `may_ask` forbids it.

    Raises:
        DomainError: the call cannot be relayed; see `relay.errors` and `gateway.chain.errors`.
        NodeUnavailable: no node responded.
    """
    signed, query, state = call.signed, call.query, call.state
    if not may_ask and (_has_pending_owner(call) or _must_compare_code(call)):
        return None
    is_trusted = check_ownership(call)
    if state.permissions == 0:
        if not may_ask:
            return None
        raise _explain_unknown_signer(profile=query.profile, call=signed, controller=query.controller)
    check_relay_permission(call)
    chain_nonce = _check_nonce(call=signed, state=state)
    check_validity(call=signed, now=int(call.now.timestamp()), head=state.head)
    fees = fees_of(call)
    # Before the start of its validity, the newest block refuses the call as it does a follower.
    is_next = signed.relay_nonce == chain_nonce and not gas_limits.was_tried_before_start(state.trial)
    maximum, gas = maximum_gas(is_trusted=is_trusted, head=state.head), None
    try:
        if is_next:
            gas = gas_limits.of_trial(call, maximum=maximum)
        if gas is None and may_ask and is_next:
            gas = gas_limits.of_estimate(call, maximum=maximum)
        elif gas is None and may_ask:
            gas = gas_limits.of_parts(call, maximum=maximum)
    except CallReverted as reverted:
        refusal = refusal_from_revert(reverted.data)
        if may_ask or not _may_lack_gas(refusal):
            raise explained(refusal, call, maximum=maximum, is_next=is_next) from reverted
    if gas is None:
        return None
    check_gas(gas_limit=gas.limit, maximum=maximum)
    return Approval(gas, fees, chain_nonce, is_trusted)


def _has_pending_owner(call: SubmittedCall) -> bool:
    return call.state.owner != call.query.key_manager and call.signed.payload == ACCEPT_OWNERSHIP


def _must_compare_code(call: SubmittedCall) -> bool:
    """Return whether the code may be trusted at home, and was not compared with it yet; see `trusted_code.trusts`."""
    state = call.state
    return get_chain() is not home() and not are_trusted(
        call.rows.trusted_codes,
        profile_code=state.profile_code_name,
        key_manager_code=state.key_manager_code_name,
    )


def fees_of(call: SubmittedCall) -> Fees:
    """
    Return the fees that a new call offers now.

    Raises:
        FeesTooHigh: current gas prices exceed the service's cap.
    """
    fees = get_chain().fees.quote_new_call(
        base_fee_wei=call.state.head.base_fee_wei,
        market_tip_wei=call.state.market_tip_wei,
        least_tip_wei=call.rows.least_tip_wei,
    )
    return replace(fees, l1=call.state.head.l1)


def explained(refusal: DomainError, call: SubmittedCall, *, maximum: int, is_next: bool) -> DomainError:
    """
    Return the error of a call that reverts: the contract's, or that the call needs more gas than allowed.

    Raises:
        NodeUnavailable: no node responded.
    """
    if not _may_lack_gas(refusal):
        return refusal
    try:
        needed, is_known = gas_limits.needed_beyond_cap(call, is_next=is_next)
        return _gas_limit_exceeded(needed, maximum, is_known=is_known)
    except CallReverted as reverted:
        # A contract may have had too little gas to give its reason within the cap.
        return refusal_from_revert(reverted.data)


def _may_lack_gas(refusal: DomainError) -> bool:
    """Return whether a lack of gas may have caused this error; it never causes a key manager's own errors."""
    return isinstance(refusal, TargetReverted | ProfileRefused)


def check_validity(*, call: RelayCall, now: int, head: Head | None = None) -> None:
    """
    Refuse a call that the next block would refuse for its validity window, or that is too close to its end.

    The next block is at least one block time later than the newest one, `head`, so a call may begin that much after
    `head` and `now`. The later of both decides whether it has ended.

    Raises:
        RelayCallNotYetValid, RelayCallExpired, ValidityTooShort.
    """
    chain_time = now if head is None else head.timestamp
    next_block, latest = min(now, chain_time) + get_chain().whole_block_seconds, max(now, chain_time)
    if call.valid_from > next_block:
        is_milliseconds = call.valid_from >= MILLISECONDS_FROM
        raise RelayCallNotYetValid(
            f"The call is valid from {call.valid_from}; the next block may have the time {next_block}. "
            + ("Sign seconds, not milliseconds." if is_milliseconds else "Send it again after Retry-After."),
            retry_after=None if is_milliseconds else call.valid_from - next_block,
            validFrom=call.valid_from,
            serverTime=now,
        )
    if call.valid_until is None:
        return
    if latest > call.valid_until:
        raise RelayCallExpired(
            f"The call was valid until {call.valid_until}; the time is {latest}. Sign a later end.",
            validUntil=call.valid_until,
            serverTime=now,
        )
    if call.valid_until - latest < get_chain().pace.min_validity_seconds:
        raise ValidityTooShort(
            f"The call expires in {call.valid_until - latest} s, which is too soon to be mined.",
            minimumSeconds=get_chain().pace.min_validity_seconds,
            validUntil=call.valid_until,
            serverTime=now,
        )


def check_ownership(call: SubmittedCall) -> bool:
    """
    Check that profile and key manager point to each other; return whether both run trusted implementations.

    The key manager of a pending owner may relay only `acceptOwnership()` (LSP-14); that case costs a node request.
    """
    query, state = call.query, call.state
    if not state.key_manager_code_name or state.target is None:
        raise KeyManagerNotFound(
            f"{query.key_manager} is not a key manager on chain {get_chain().id}. "
            f"Send the address that owner() of the profile, {query.profile}, returns there."
        )
    if state.target != query.profile:
        raise ForeignKeyManager(
            f"{query.key_manager} controls {state.target}; you are signed in as {query.profile}. "
            "Send the key manager of this profile, or sign in with the other.",
            target=state.target,
        )
    if state.owner != query.key_manager and not (
        call.signed.payload == ACCEPT_OWNERSHIP
        and get_chain_client().read_pending_owner(profile=query.profile) == query.key_manager
    ):
        raise KeyManagerNotOwner(f"{query.profile} is owned by {state.owner}.", owner=state.owner)
    is_trusted = trusts(
        call.rows.trusted_codes,
        profile_code=state.profile_code_name,
        key_manager_code=state.key_manager_code_name,
    )
    if not is_trusted and not trusts_any_code():
        raise UntrustedCode(
            "The service relays only for trusted contract implementations.",
            profileCode=state.profile_code_name,
            keyManagerCode=state.key_manager_code_name,
        )
    return is_trusted


def check_relay_permission(call: SubmittedCall) -> None:
    """Refuse a controller without the permission EXECUTE_RELAY_CALL."""
    if not call.state.permissions & Permission.EXECUTE_RELAY_CALL:
        raise RelayPermissionMissing(
            f"The controller {call.query.controller} lacks EXECUTE_RELAY_CALL on {call.query.profile}.",
            controller=call.query.controller,
        )


def _explain_unknown_signer(*, profile: str, call: RelayCall, controller: str) -> DomainError:
    """Return the error of the known signing mistake that explains the signature, or that the signer is unknown."""
    candidates = [
        (mistake, recover_address(mistake.digest, call.signature))
        for mistake in wrong_hashes(chain_id=get_chain().id, call=call, profile=profile)
    ]
    permissions_of_each = get_chain_client().read_permissions(
        profile=profile, controllers=[address for _, address in candidates]
    )
    for (mistake, address), permissions in zip(candidates, permissions_of_each, strict=True):
        if permissions:
            return mistake.refusal(controller=address)
    hash_ = "0x" + call.digest(get_chain().id).hex()
    return SignerNotController(
        f"The signature recovers {controller}, which has no permissions on {profile}. Sign the hash of this request, "
        f"{hash_}, with a controller: it is made of chain id, key manager, nonce with its channel, validity timestamps "
        "and payload.",
        recovered=controller,
        hash=hash_,
    )


def _check_nonce(*, call: RelayCall, state: RelayState) -> int:
    """Return the chain's next nonce of the channel; the call's nonce may be equal or higher."""
    if state.relay_nonce is None:
        raise KeyManagerNotFound(f"{call.key_manager} does not answer getNonce of LSP-25.")
    if call.relay_nonce < state.relay_nonce:
        raise RelayNonceUsed(
            f"The key manager expects nonce {state.relay_nonce} on channel {call.channel}.",
            expectedNonce=str(state.relay_nonce),
        )
    return state.relay_nonce


def maximum_gas(*, is_trusted: bool, head: Head) -> int:
    """Return the highest gas limit that the service signs for code that is trusted or not, in blocks like this one."""
    maximum: int = settings.RELAY_MAX_GAS if is_trusted else settings.RELAY_MAX_GAS_UNTRUSTED
    return min(maximum, head.gas_limit // _SHARE_OF_BLOCK) if head.gas_limit else maximum


def check_gas(*, gas_limit: int, maximum: int) -> None:
    """Refuse a call that needs more gas than the service relays in one transaction."""
    if gas_limit > maximum:
        raise _gas_limit_exceeded(gas_limit, maximum)


def check_cost(call: SubmittedCall) -> None:
    """
    Refuse an approved call that may cost more credits than the operator allows for a call on this chain.

    Raises:
        CallTooExpensive: at the highest fees that would be signed, it costs more.
    """
    chain = get_chain()
    if 0 < chain.max_call_credits < call.hold_credits:
        raise CallTooExpensive(
            f"The call may cost {call.hold_credits} credits; a call on {chain.name} may cost {chain.max_call_credits}.",
            highestCost=call.hold_credits,
            maximumCost=chain.max_call_credits,
            chainId=chain.id,
        )


def _gas_limit_exceeded(gas_limit: int, maximum: int, *, is_known: bool = True) -> GasLimitExceeded:
    need = f"a gas limit of at least {gas_limit}" if is_known else f"more than {gas_limit} gas"
    return GasLimitExceeded(
        f"The call needs {need}; the maximum is {maximum}.", gasLimit=gas_limit, maximum=maximum
    )


def check_own(
    *, profile_address: str | None, address: str, signers: Callable[[], Sequence[str]] = list
) -> None:
    """
    Refuse an address that is not the profile of the signed-in user.

    Some wallets send the controller's address instead, as the text of LSP-15 suggests. `signers` returns the addresses
    that may have signed, so that the error can say so.

    Raises:
        NotYourProfile: the address is another profile's.
    """
    if address != profile_address:
        detail = (
            f"You are signed in as {profile_address}. Send this address, or sign in with the other profile."
        )
        if address in signers():
            detail = f"{address} is the controller that signs. Send the profile's address, {profile_address}."
        raise NotYourProfile(detail, profile=profile_address)


def owner_of(*, profile: str) -> str:
    """
    Return the address of the profile's owner; the preflight checks whether it is a key manager.

    Raises:
        KeyManagerNotFound: the profile does not answer `owner()`.
        NodeUnavailable: no node responded.
    """
    state = get_chain_client().read_profile(
        profile=profile, controller=profile, digest=bytes(32), signature=b""
    )
    if state.owner is None:
        raise KeyManagerNotFound(f"{profile} has no owner on this chain.")
    return state.owner
