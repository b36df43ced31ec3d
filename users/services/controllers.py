"""Reads about controllers from the chain. Call these functions outside any transaction."""

from collections.abc import Sequence
from contextlib import suppress

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.confirmation import confirmed
from gateway.chain.contracts import LSP20_VERIFIED, encode_lsp20_verify_call
from gateway.chain.errors import NodeUnavailable, UnrecoverableSignature
from gateway.chain.lsp6 import Permission
from gateway.chain.signatures import personal_sign_digest, recover_address
from gateway.chain.types import ProfileState
from signer.contracts import code_name
from users.errors import ProfileNotDeployed, SignatureNotByController, SignPermissionMissing, UntrustedCode
from users.models import TrustedImplementation, User
from users.queries import are_trusted, trusted_codes
from users.services.trusted_code import trusts_any_code


def recover_controller(*, profile_address: str, message: str, signature: bytes) -> str:
    """
    Return the controller that signed `message` for the profile; `signature` must be normalised.

    The profile itself must accept the signature (ERC-1271), the controller must have
    SIGN, and the code must be trusted, because anyone can deploy a contract that accepts
    every signature.

    Raises:
        UnrecoverableSignature: no address can be recovered from the signature.
        ProfileNotDeployed: there is no contract at the address.
        UntrustedCode: the profile or its owner is not a trusted contract, or they do not point to each other.
        SignatureNotByController: the recovered key is not a controller of the profile.
        SignPermissionMissing: the controller lacks SIGN.
    """
    digest = personal_sign_digest(message.encode())
    controller = recover_address(digest, signature)
    confirmed(lambda: _check_signature(profile_address, controller, digest, signature))
    return controller


def _check_signature(profile_address: str, controller: str, digest: bytes, signature: bytes) -> None:
    state = get_chain_client().read_profile(
        profile=profile_address, controller=controller, digest=digest, signature=signature
    )
    _require_trusted_profile(profile_address, state)
    if not state.permissions:
        raise SignatureNotByController(
            "The recovered key has no permission on the profile. Sign the message of /api/auth/nonce byte for byte, by "
            "personal_sign with the key of a controller.",
            recovered=controller,
        )
    if not state.permissions & Permission.SIGN:
        raise SignPermissionMissing(
            "Grant SIGN to this controller, or use another controller.", controller=controller
        )
    if not state.signature_valid:
        raise SignatureNotByController(
            "The profile does not accept the signature. Sign with another controller that has SIGN.",
            recovered=controller,
        )


# Profiles that a probe of this process has found. The signature check notices later changes.
_seen_profiles: set[str] = set()
_MOST_SEEN = 10_000


def require_profile_code(*, profile_address: str) -> None:
    """
    Refuse an address without a profile, if a node responds to the probe in time.

    Without a response, the address is accepted. Profiles that have signed in before are not probed.

    Raises:
        ProfileNotDeployed: there is no contract at the address.
        UntrustedCode: the contract's code is not trusted.
    """
    if profile_address in _seen_profiles or User.objects.filter(profile_address=profile_address).exists():
        return
    try:
        confirmed(lambda: _check_code(get_chain_client().probe_code(address=profile_address)))
    except NodeUnavailable:
        return
    if len(_seen_profiles) >= _MOST_SEEN:
        _seen_profiles.clear()
    _seen_profiles.add(profile_address)


def _not_deployed() -> ProfileNotDeployed:
    return ProfileNotDeployed(
        f"There is no contract at this address on chain {get_chain().id}. Send the address of the profile, not of its "
        "controller's key, and check the chain."
    )


def _check_code(code: bytes) -> None:
    if not code:
        raise _not_deployed()
    name = code_name(code)
    if not trusts_any_code() and f"{TrustedImplementation.Kind.PROFILE} {name}" not in trusted_codes():
        raise UntrustedCode(
            "The address runs code that this service does not trust. Send the address of the profile, not of its "
            "key manager; if it is that, ask the operator to trust the code.",
            profileCode=name,
        )


def _require_trusted_profile(profile_address: str, state: ProfileState) -> None:
    if not state.profile_code:
        raise _not_deployed()
    if state.owner is None:
        raise UntrustedCode(
            "The contract does not have an owner, so it is not a profile. Send the profile's address."
        )
    key_manager = get_chain_client().read_key_manager(key_manager=state.owner)
    if key_manager.target != profile_address:
        raise UntrustedCode("The profile's owner is not its own key manager.")
    profile_code, key_manager_code = code_name(state.profile_code), code_name(key_manager.code)
    if not trusts_any_code() and not are_trusted(
        trusted_codes(), profile_code=profile_code, key_manager_code=key_manager_code
    ):
        raise UntrustedCode(
            "The profile or its key manager runs code that this service does not trust.",
            profileCode=profile_code,
            keyManagerCode=key_manager_code,
        )


def is_valid_signature(*, profile_address: str, message: str, signature: bytes) -> bool:
    """Return whether the profile accepts this signature over this message; for diagnosis only."""
    digest = personal_sign_digest(message.encode())
    try:
        controller = recover_address(digest, signature)
    except UnrecoverableSignature:
        return False
    return (
        get_chain_client()
        .read_profile(profile=profile_address, controller=controller, digest=digest, signature=signature)
        .signature_valid
    )


def signed_by_controller(*, profile_address: str, messages: Sequence[str], signature: bytes) -> str | None:
    """Return the first of these messages whose signer is a controller of the profile; for diagnosis only."""
    signers: dict[str, str] = {}
    for message in messages:
        with suppress(UnrecoverableSignature):
            signers.setdefault(recover_address(personal_sign_digest(message.encode()), signature), message)
    permissions = get_chain_client().read_permissions(profile=profile_address, controllers=list(signers))
    return next((message for message, bits in zip(signers.values(), permissions, strict=True) if bits), None)


def may_sign(*, profile_address: str, controller: str) -> bool:
    """
    Return whether the controller has SIGN on the profile at the newest block, as a sign-in requires.

    The profile's owner may have changed, so permissions count only if the owner is a
    trusted key manager of the profile. A "no" ends a session, so another node confirms it.
    """
    return confirmed(lambda: _may_sign(profile_address, controller), refuses=lambda may: not may)


def _may_sign(profile_address: str, controller: str) -> bool:
    state = _trusted_state(profile_address, controller)
    return state is not None and bool(state.permissions & Permission.SIGN)


def may_relay(*, profile_address: str, controller: str, payload: bytes) -> bool:
    """
    Return whether the profile lets the controller relay this payload at the newest block.

    The controller needs EXECUTE_RELAY_CALL, and the key manager itself decides about the payload (LSP-20): about other
    permissions, and about allowed calls and data keys.
    """
    return confirmed(lambda: _may_relay(profile_address, controller, payload), refuses=lambda may: not may)


def _may_relay(profile_address: str, controller: str, payload: bytes) -> bool:
    state = _trusted_state(profile_address, controller)
    if state is None or not state.permissions & Permission.EXECUTE_RELAY_CALL:
        return False
    verified = get_chain_client().read_view(
        contract=str(state.owner),
        calldata=encode_lsp20_verify_call(profile=profile_address, controller=controller, payload=payload),
    )
    return verified[: len(LSP20_VERIFIED)] == LSP20_VERIFIED


def _trusted_state(profile_address: str, controller: str) -> ProfileState | None:
    """Return the profile's state with the controller's permissions; None if its code or key manager is not trusted."""
    state = get_chain_client().read_profile(
        profile=profile_address, controller=controller, digest=bytes(32), signature=b""
    )
    try:
        _require_trusted_profile(profile_address, state)
    except (ProfileNotDeployed, UntrustedCode):
        return None
    return state
