"""
Vouchers: a sponsor's server signs that its policy may pay for one call of one profile.

A voucher is EIP-712 typed data, not a text for `personal_sign` (EIP-191): ethers, viem and web3 sign typed data with
one function, hardware wallets and cloud key stores show or log its fields by name, and fields cannot be confused. The
domain binds the chain; the message binds the sponsor, the policy, the profile, an id that can be used once, a
deadline and a maximum. The signer must be an externally owned account, because the service calls no contract (EIP-1271)
to verify the signature.

A unique key in PostgreSQL, not a rule here, prevents a second use of an id.
"""

import json
from base64 import urlsafe_b64decode
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from eth_account.messages import SignableMessage, encode_typed_data
from eth_hash.auto import keccak

from gateway.chain.errors import UnusableSignature
from gateway.chain.signatures import recover_signers
from gateway.common.fields import checksum
from sponsors.errors import VoucherRefused

# The longest voucher accepted; it is sent as a header. All fields and a signature fit, with room for long names.
MOST_CHARACTERS = 1500
UINT64_MAX, ID_BYTES = 2**64 - 1, 32
DOMAIN_NAME, DOMAIN_VERSION = "Relay sponsor", "1"
TYPES = {
    "Voucher": [
        {"name": "sponsor", "type": "string"},
        {"name": "policy", "type": "string"},
        {"name": "profile", "type": "address"},
        {"name": "id", "type": "bytes32"},
        {"name": "deadline", "type": "uint64"},
        {"name": "maximumCredits", "type": "uint64"},
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Voucher:
    """
    The message that the sponsor signs.

    `sponsor` and `policy` are public ids, `voucher_id` is 32 random bytes, `deadline` a unix time in seconds, and
    `maximum_credits` the most that the sponsor pays for the call.
    """

    sponsor: str
    policy: str
    profile: str
    voucher_id: bytes
    deadline: int
    maximum_credits: int


@dataclass(frozen=True, slots=True)
class SignedVoucher:
    """A voucher as sent with a call, not verified yet."""

    voucher: Voucher
    signature: bytes


def parse(text: str) -> SignedVoucher:
    """
    Parse a voucher: base64url of a JSON object with the signed fields and the `signature`.

    Raises:
        VoucherRefused: the text is malformed.
    """
    try:
        fields = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        voucher = Voucher(
            sponsor=str(fields["sponsor"]),
            policy=str(fields["policy"]),
            profile=checksum(fields["profile"]),
            voucher_id=_unhex(fields["id"]),
            deadline=int(fields["deadline"]),
            maximum_credits=int(fields["maximumCredits"]),
        )
        return SignedVoucher(voucher, _unhex(fields["signature"]))
    # RecursionError: JSON that is nested very deeply. UnicodeDecodeError and the errors of base64 are ValueErrors.
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise VoucherRefused(
            "A voucher is base64url of a JSON object with its signed fields and `signature`.", reason="form"
        ) from error


def _unhex(text: Any) -> bytes:
    return bytes.fromhex(str(text).removeprefix("0x"))


def typed_data(voucher: Voucher, *, chain_id: int) -> SignableMessage:
    """Return the message to sign (EIP-712)."""
    domain: dict[str, Any] = {"name": DOMAIN_NAME, "version": DOMAIN_VERSION, "chainId": chain_id}
    message = {
        "sponsor": voucher.sponsor,
        "policy": voucher.policy,
        "profile": voucher.profile,
        "id": voucher.voucher_id,
        "deadline": voucher.deadline,
        "maximumCredits": voucher.maximum_credits,
    }
    return encode_typed_data(domain, TYPES, message)


def verify(
    voucher: Voucher,
    signature: bytes,
    *,
    chain_id: int,
    sponsor: str,
    signers: Collection[str],
    profile: str,
    now: datetime,
) -> str:
    """
    Return which of the registered `signers` signed the voucher for this sponsor, profile and chain.

    Raises:
        VoucherRefused: it is for another sponsor, profile or chain, another key signed it, or its deadline has passed.
    """
    if voucher.sponsor != sponsor:
        raise VoucherRefused("The voucher is for another sponsor.", reason="sponsor")
    if voucher.profile.lower() != profile.lower():
        raise VoucherRefused("The voucher is for another profile.", reason="profile")
    numbers = voucher.deadline, voucher.maximum_credits
    if not all(0 <= each <= UINT64_MAX for each in numbers) or len(voucher.voucher_id) != ID_BYTES:
        raise VoucherRefused("A field of the voucher is out of range.", reason="range")
    if now.timestamp() >= voucher.deadline:
        raise VoucherRefused("The voucher's deadline has passed.", reason="deadline")
    signer = _signer(voucher, signature, chain_id=chain_id)
    if signer not in signers:
        raise VoucherRefused(
            f"The voucher is signed by {signer}, which is not a registered signer of the sponsor. Check the signed "
            f"fields, the domain and the chain id, {chain_id}.",
            reason="signer",
        )
    return signer


def _signer(voucher: Voucher, signature: bytes, *, chain_id: int) -> str:
    message = typed_data(voucher, chain_id=chain_id)
    digest = keccak(b"\x19" + message.version + message.header + message.body)
    try:
        return recover_signers(signature, digest, chain_id=chain_id)[1][0]
    except UnusableSignature as error:
        raise VoucherRefused("The voucher's signature is malformed.", reason="signature") from error
