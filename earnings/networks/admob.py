"""
Google AdMob: rewarded videos, signed by Google's rotating keys.

https://developers.google.com/admob/android/ssv
"""

import base64
import itertools
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import ClassVar
from urllib.parse import unquote, unquote_to_bytes

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from credits.models import EntrySource
from earnings.models import PostbackKind
from earnings.networks.base import (
    Adapter,
    PostbackEvent,
    PostbackPostponed,
    PostbackRefused,
    RawRequest,
    SignedFields,
)
from earnings.networks.parameters import identifier, kind_of, number

# The signature and the key id come last, in this order; anything after them is unsigned.
_SIGNED = re.compile(rb"(.+)&signature=([A-Za-z0-9_-]+=*)&key_id=([0-9]{1,20})")
_MILLISECONDS = re.compile(r"[0-9]{13}", re.ASCII)
# The values in the request of AdMob's "verify URL" button.
_TEST_AD_UNIT, _TEST_TRANSACTION = "1234567890", "123456789"


class AdMob(Adapter):
    """
    The signature covers everything: ECDSA P-256 with SHA-256.

    Google's keys sign for every publisher, so any publisher's ad unit could name our users.
    """

    slug: ClassVar = "admob"
    title: ClassVar = "Google AdMob"
    kind: ClassVar = EntrySource.VIDEO_ADS
    covers: ClassVar = frozenset({"external_id", "user", "amount", "occurred_at"})
    max_age: ClassVar = timedelta(hours=1)
    proven_by: ClassVar = "https://github.com/hiyali/go-lib-ssv/issues/2"
    needs_secret: ClassVar = False
    signs_for_all: ClassVar = True

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        """
        Check Google's signature over the query before it.

        Google's real postbacks sign the percent-decoded text, but its documentation describes the query as sent. Both
        are accepted. In both cases, only the signed text is split into parameters.
        """
        match = _SIGNED.fullmatch(request.query) or _SIGNED.fullmatch(_with_signature_last(request.query))
        if match is None:
            raise PostbackRefused("the signature is missing at the end")
        pem = keys.get(match[3].decode())
        if pem is None:
            raise PostbackPostponed("unknown verifier key")
        decoded = unquote_to_bytes(match[1])
        if _is_signed(pem, signature=match[2], text=decoded):
            return _ascending(decoded)
        if decoded != match[1] and _is_signed(pem, signature=match[2], text=match[1]):
            return {
                name: unquote(value, errors="surrogateescape") for name, value in _ascending(match[1]).items()
            }
        raise PostbackRefused("bad signature")

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read a reward; the amount is the ad unit's configured one."""
        transaction = identifier(fields, "transaction_id")
        if not _MILLISECONDS.fullmatch(fields.get("timestamp", "")):
            raise PostbackRefused("no usable timestamp")
        is_test = fields.get("ad_unit") == _TEST_AD_UNIT and transaction == _TEST_TRANSACTION
        # The test callback may lack a reward.
        amount = Decimal(0) if is_test else number(fields, "reward_amount")
        return PostbackEvent(
            kind=PostbackKind.TEST if is_test else kind_of(amount),
            external_id=transaction,
            user_ref=fields.get("user_id", ""),
            amount=amount,
            ad_unit=fields.get("ad_unit", ""),
            occurred_at=datetime.fromtimestamp(int(fields["timestamp"]) / 1000, tz=UTC),
        )


def _with_signature_last(query: bytes) -> bytes:
    """Return the query with signature and key id moved back to the end; a CDN may have sorted the parameters."""
    parts = query.split(b"&")
    last = [part for name in (b"signature=", b"key_id=") for part in parts if part.startswith(name)]
    return b"&".join([part for part in parts if part not in last] + last)


def _is_signed(pem: str, *, signature: bytes, text: bytes) -> bool:
    try:
        key = load_pem_public_key(pem.encode())
        given = base64.urlsafe_b64decode(signature + b"=" * (-len(signature) % 4))
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise PostbackPostponed("unusable verifier key")
        key.verify(given, text, ec.ECDSA(SHA256()))
    except (InvalidSignature, ValueError, UnsupportedAlgorithm):
        return False
    return True


def _ascending(signed: bytes) -> dict[str, str]:
    """
    Split the signed text, whose names Google sorts.

    In decoded text, an `&` inside a value looks like a separator, and a wallet chooses `custom_data` freely; an
    injected parameter is detected because it repeats a name or breaks the order.
    """
    text = signed.decode(errors="surrogateescape")
    # Google names every parameter, so a part without a name belongs to the value before it.
    pairs = [pair.partition("=")[::2] for pair in text.split("&") if "=" in pair]
    names = [name for name, _ in pairs]
    if any(first >= second for first, second in itertools.pairwise(names)):
        raise PostbackRefused("repeated parameter")
    return dict(pairs)
