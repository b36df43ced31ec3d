"""
Check everything about a relay call that can be checked before a credit is held.

One batched node round trip reads the chain; at most one more simulates the call
(or, where the signer is unknown, looks for a known signing mistake). No row is
written and no transaction is open.
"""

from dataclasses import dataclass

from django.conf import settings

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.contracts import code_name, encode_execute_relay_call, refusal_from_revert
from gateway.chain.errors import CallReverted, RelayCallExpired, RelayCallNotYetValid
from gateway.chain.fees import Fees, quote_fees
from gateway.chain.lsp6 import Permission, has
from gateway.chain.lsp25 import RelayCall, wrong_hashes
from gateway.chain.signatures import recover_address
from gateway.chain.signing import get_signer
from gateway.chain.types import RelayState
from gateway.common.errors import DomainError
from relay import queries
from relay.errors import (
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
from relay.pricing import gas_limit_for
from users.errors import UntrustedCode
from users.models import User
from users.services import trusted_code


@dataclass(frozen=True, slots=True)
class Approval:
    """A relay call that the chain would execute now. Gas in units, fees in wei."""

    profile: str
    call: RelayCall
    identity: queries.Identity
    calldata: bytes
    gas_estimate: int
    gas_limit: int
    fees: Fees
    # The key manager's next nonce of the call's channel, as read from the chain.
    chain_nonce: int

    @property
    def is_follower(self) -> bool:
        """Whether calls before this one in its channel have yet to be executed."""
        return self.call.relay_nonce > self.chain_nonce


def approve(*, profile: str, call: RelayCall, identity: queries.Identity, now: int) -> Approval:
    """
    Check that the call is the profile's, signed correctly, permitted, within its validity, in order and executable.

    `call.signature` must be normalised; `now` is in unix seconds.

    Raises:
        DomainError: the call cannot be relayed; see `relay.errors` and `gateway.chain.errors`.
        NodeUnavailable: no node answered.
    """
    check_validity(call=call, now=now)
    state = get_chain_client().read_relay_state(
        profile=profile, key_manager=call.key_manager, controller=identity.controller, channel=call.channel
    )
    trusted = _check_ownership(profile=profile, call=call, state=state)
    _check_controller(profile=profile, call=call, identity=identity, state=state)
    chain_nonce = _check_nonce(call=call, state=state)
    check_validity(call=call, now=state.head.timestamp)
    policy = get_chain().fees
    fees = quote_fees(
        base_fee_wei=state.head.base_fee_wei,
        tip_wei=state.tip_wei,
        floor_wei=policy.floor_wei,
        cap_wei=policy.new_call_cap_wei,
    )
    calldata = encode_execute_relay_call(
        signature=call.signature, nonce=call.relay_nonce, validity=call.validity, payload=call.payload
    )
    estimate = _simulate(
        profile=profile, call=call, identity=identity, calldata=calldata, chain_nonce=chain_nonce
    )
    gas_limit = _check_gas(estimate=estimate, trusted=trusted)
    return Approval(profile, call, identity, calldata, estimate, gas_limit, fees, chain_nonce)


def check_validity(*, call: RelayCall, now: int) -> None:
    """
    Refuse a call outside its validity window, or too close to its end to be mined.

    Raises:
        RelayCallNotYetValid, RelayCallExpired, ValidityTooShort.
    """
    if not call.validity:
        return
    if now < call.valid_from:
        raise RelayCallNotYetValid(
            f"The call is valid from {call.valid_from} and it is {now}.",
            validFrom=call.valid_from,
            serverTime=now,
        )
    if call.valid_until is None:
        return
    if now > call.valid_until:
        raise RelayCallExpired(
            f"The call was valid until {call.valid_until} and it is {now}.",
            validUntil=call.valid_until,
            serverTime=now,
        )
    if call.valid_until - now < settings.RELAY_MIN_VALIDITY_SECONDS:
        raise ValidityTooShort(
            f"The call is valid for {call.valid_until - now} s more, too short to be mined.",
            minimumSeconds=settings.RELAY_MIN_VALIDITY_SECONDS,
            validUntil=call.valid_until,
            serverTime=now,
        )


def _check_ownership(*, profile: str, call: RelayCall, state: RelayState) -> bool:
    """Check in both directions that the key manager is the profile's; return whether their code is trusted."""
    if not state.key_manager_code or state.target is None:
        raise KeyManagerNotFound(f"{call.key_manager} is no key manager on chain {get_chain().id}.")
    if state.target != profile:
        raise ForeignKeyManager(
            f"{call.key_manager} controls {state.target}; you are signed in as {profile}.",
            target=state.target,
        )
    if state.owner != call.key_manager:
        raise KeyManagerNotOwner(f"{profile} is owned by {state.owner}.", owner=state.owner)
    trusted = trusted_code.code_is_trusted(
        profile_code=state.profile_code, key_manager_code=state.key_manager_code
    )
    if not trusted and not trusted_code.trusts_any_code():
        raise UntrustedCode(
            "The service relays only for contract implementations that were vetted.",
            profileCode=code_name(state.profile_code),
            keyManagerCode=code_name(state.key_manager_code),
        )
    return trusted


def _check_controller(
    *, profile: str, call: RelayCall, identity: queries.Identity, state: RelayState
) -> None:
    if state.permissions == 0:
        raise _explain_unknown_signer(profile=profile, call=call, identity=identity)
    if not has(state.permissions, Permission.EXECUTE_RELAY_CALL):
        raise RelayPermissionMissing(
            f"The controller {identity.controller} lacks EXECUTE_RELAY_CALL on {profile}.",
            controller=identity.controller,
        )


def _explain_unknown_signer(*, profile: str, call: RelayCall, identity: queries.Identity) -> DomainError:
    """Return the error of the signing mistake that makes the signature a controller's, if there is one."""
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
    return SignerNotController(
        f"The signature recovers {identity.controller}, which holds no permission on {profile}.",
        recovered=identity.controller,
    )


def _check_nonce(*, call: RelayCall, state: RelayState) -> int:
    """Return the chain's next nonce of the channel; the call's may be equal or ahead."""
    if state.relay_nonce is None:
        raise KeyManagerNotFound(f"{call.key_manager} does not answer getNonce of LSP-25.")
    if call.relay_nonce < state.relay_nonce:
        raise RelayNonceUsed(
            f"The key manager expects nonce {state.relay_nonce} on channel {call.channel}.",
            expectedNonce=str(state.relay_nonce),
        )
    return state.relay_nonce


def _simulate(
    *, profile: str, call: RelayCall, identity: queries.Identity, calldata: bytes, chain_nonce: int
) -> int:
    """Return the estimated gas. A follower is simulated without its nonce, which the chain does not expect yet."""
    client = get_chain_client()
    try:
        if call.relay_nonce > chain_nonce:
            return client.simulate_follower(
                key_manager=call.key_manager,
                profile=profile,
                controller=identity.controller,
                payload=call.payload,
                gas_cap=settings.RELAY_MAX_GAS,
            )
        return client.simulate_relay_call(
            sender=get_signer().addresses()[0],
            key_manager=call.key_manager,
            calldata=calldata,
            gas_cap=settings.RELAY_MAX_GAS,
        )
    except CallReverted as reverted:
        raise refusal_from_revert(reverted.data) from reverted


def _check_gas(*, estimate: int, trusted: bool) -> int:
    gas_limit = gas_limit_for(estimate=estimate)
    cap = settings.RELAY_MAX_GAS if trusted else settings.RELAY_MAX_GAS_UNTRUSTED
    if gas_limit > cap:
        raise GasLimitExceeded(
            f"The call needs a gas limit of {gas_limit} and {cap} are relayed.",
            gasLimit=gas_limit,
            maximum=cap,
        )
    return gas_limit


def check_own(*, user: User, address: str) -> None:
    """
    Refuse an address that is not the profile of the signed-in user.

    Raises:
        NotYourProfile: it is another one.
    """
    if address != user.profile_address:
        raise NotYourProfile(f"You are signed in as {user.profile_address}.", profile=user.profile_address)
