"""
Known ways to sign a relay call wrongly, each with its own error.

A key manager cannot tell a wrong hash from a wrong signer: it recovers some other address and refuses it. The service
therefore recovers the address first. If a controller has signed a known wrong hash, the error names the mistake.
"""

from typing import ClassVar

from gateway.common.errors import DomainError


class SignatureMistake(DomainError):
    """The signature was made over another hash than LSP-25's; `detail` explains what to change."""

    status = 400
    advice: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        cls.__doc__ = f"{cls.__doc__}\n\n`controller` is the key that signed."


class SignedAsPersonalMessage(SignatureMistake):
    """`personal_sign` was used over the LSP-25 hash; sign the hash itself, without a message prefix."""

    code, title = "signature-personal-sign-digest", "The LSP-25 hash was signed as a personal message"
    advice = (
        "Your wallet put the prefix of personal_sign before the LSP-25 hash. Sign the 32 bytes of the hash "
        "directly with the controller's key (signDigest, sign), not with signMessage."
    )


class SignedAsHexText(SignatureMistake):
    """`personal_sign` was used over the hash written as text; sign the 32 bytes of the hash itself."""

    code, title = "signature-personal-sign-text", "The hash was signed as text"
    advice = (
        "The text 0x… of the LSP-25 hash was signed as a personal message of 66 characters. Sign the bytes "
        "of the hash directly with the controller's key, not with signMessage."
    )


class SignedInnerMessage(SignatureMistake):
    """`personal_sign` was used over the inner message; use EIP-191 version 0x00 with the key manager."""

    code, title = "signature-personal-sign-message", "The inner message was signed as a personal message"
    advice = (
        "personal_sign was used over the packed LSP-25 words or their hash. Hash 0x1900, the key manager's "
        "address and the packed words instead, and sign that hash directly."
    )


class SignedWithoutPrefix(SignatureMistake):
    """The packed words were hashed without 0x1900 and the key manager's address before them."""

    code, title = "signature-prefix-missing", "The EIP-191 prefix is missing"
    advice = (
        "Put the bytes 0x19, 0x00 and the key manager's address before the packed LSP-25 words, then hash "
        "and sign."
    )


class SignedForProfile(SignatureMistake):
    """The hash uses the profile as the intended validator; use the key manager."""

    code, title = "signature-profile-as-validator", "The profile was used as the validator"
    advice = (
        "The hash was made with the profile's address as intended validator. Use the key manager's address: "
        "it is the profile's owner()."
    )


class SignedForOtherChain(SignatureMistake):
    """The hash, or the message of a sign-in, contains another chain id than that of this service."""

    code, title = "signature-other-chain", "The signature is for another chain"
    advice = (
        "The hash was made with chain id {signed}. Sign with chain id {chain_id}, or send the call with chainId "
        "{signed} if the service has that chain."
    )


class SignedLegacyPacked(SignatureMistake):
    """The hash is that of key managers 0.6 and 0.7: personal_sign over chain id, key manager, nonce and payload."""

    code, title = "signature-legacy-0-7", "The call was signed in the form of 2022"
    advice = (
        "The hash is that of LSP-6 key managers 0.6 and 0.7. Sign the LSP-25 hash: version 25, chain id, "
        "nonce, validity timestamps and value as 32-byte words, the payload after them, EIP-191 version 0x00."
    )


class SignedLegacyVersionSix(SignatureMistake):
    """The hash is that of key managers 0.8 and 0.9: version 6, without validity timestamps."""

    code, title = "signature-legacy-0-9", "The call was signed with version 6 and without validity"
    advice = (
        "The hash is that of LSP-6 key managers 0.8 and 0.9. Use version 25 instead of 6 and put the word of "
        "the validity timestamps (0 for none) between nonce and value."
    )


class SignedVersionSix(SignatureMistake):
    """The hash is that of key managers 0.10: version 6 instead of LSP-25's 25."""

    code, title = "signature-legacy-0-10", "The call was signed with version 6"
    advice = (
        "The first word of the hash is 6, as LSP-6 key managers 0.10 had it. Use 25, the version of LSP-25."
    )


class SignedWithValue(SignatureMistake):
    """The hash contains a value; the service sends none with a relay call, so that word must be 0."""

    code, title = "signature-value-not-zero", "The call was signed with a value"
    advice = (
        "The hash carries {signed} wei as the value sent along. The relayer sends no LYX: sign with value 0. "
        "An amount inside the payload is paid by the profile itself and stays as it is."
    )


class SignedWithOtherNonce(SignatureMistake):
    """The signature belongs to a neighbouring relay nonce; send the nonce that was signed."""

    code, title = "signature-other-nonce", "The call was signed with another nonce"
    advice = (
        "The hash was made with nonce {signed}, but the request has {nonce}. Send the nonce that was signed."
    )


class SignedWithoutChannel(SignatureMistake):
    """The hash contains only the sequence number; the relay nonce has the channel in its upper 128 bits."""

    code, title = "signature-channel-missing", "The nonce was signed without its channel"
    advice = (
        "The hash was made with nonce {signed}. Sign with the whole number that getNonce(controller, "
        "channel) returns, {nonce}: the channel is its upper half."
    )


class SentWithoutChannel(SignatureMistake):
    """The hash contains a relay nonce with a channel, and the request only its sequence number."""

    code, title = "signature-channel-not-sent", "The nonce was sent without its channel"
    advice = (
        "The hash was made with nonce {signed}, but the request has {nonce}. Send the whole number that "
        "getNonce(controller, channel) returned, as text: JSON numbers above 2^53 lose digits."
    )


class SignedWithoutValidity(SignatureMistake):
    """The request carries validity timestamps that the signature does not cover."""

    code, title = "signature-validity-missing", "The validity timestamps were not signed"
    advice = (
        "The hash was made with validity timestamps 0, but the request carries others. Sign with the same "
        "validityTimestamps that you send."
    )


class SignedAbiEncoded(SignatureMistake):
    """The words were encoded with abi.encode; LSP-25 packs them, the payload without offset and length."""

    code, title = "signature-abi-encoded", "The message was encoded with abi.encode"
    advice = (
        "The message was made with abi.encode. Pack it (abi.encodePacked, solidityPacked): five 32-byte words "
        "and then the payload's own bytes, without offset, length or padding."
    )


class SignedPayloadAlone(SignatureMistake):
    """The signature covers only the payload, so anyone could replay it. Sign the LSP-25 hash."""

    code, title = "signature-payload-only", "Only the payload was signed"
    advice = (
        "The signature covers only the payload. Sign the LSP-25 hash, which also covers the chain, the key "
        "manager, the nonce and the validity."
    )
