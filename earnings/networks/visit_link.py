"""
Our own signed visit link, for push networks that pay for traffic and do not report users.

The link contains user, campaign, amount and expiry; its id is credited once. A push network
calls it as its visit postback.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import ClassVar

from credits.models import EntrySource
from earnings.networks.base import (
    MAX_PATH_TOKEN_LENGTH,
    Adapter,
    PostbackEvent,
    PostbackRefused,
    RawRequest,
    SignedFields,
)
from earnings.networks.parameters import event_of, number
from earnings.networks.signatures import base64url_hmac, require_match, unpadded

_MAX_DIGITS = 12


class VisitLink(Adapter):
    """HMAC-SHA256 of the link's content; the last part of the path is content and signature."""

    slug: ClassVar = "visit-link"
    title: ClassVar = "Visit link"
    kind: ClassVar = EntrySource.PUSH_ADS
    covers: ClassVar = frozenset({"external_id", "user", "amount"})
    methods: ClassVar = frozenset({"GET", "POST"})
    has_path_token: ClassVar = False

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        content, _, given = request.path_token.partition(".")
        require_match(given, secrets=secrets, compute=base64url_hmac("sha256", content.encode()))
        try:
            decoded = base64.urlsafe_b64decode(content + "=" * (-len(content) % 4))
            fields = dict(json.loads(decoded, parse_float=str))
        except (TypeError, ValueError) as error:
            raise PostbackRefused("unreadable link") from error
        return {str(name): str(value) for name, value in fields.items()}

    def parse(self, fields: SignedFields) -> PostbackEvent:
        try:
            expires_at = datetime.fromtimestamp(int(number(fields, "exp")), tz=UTC)
        except (OverflowError, ValueError) as error:
            raise PostbackRefused("no usable exp") from error
        return event_of(fields, id_="jti", user="user", amount="amount", expires_at=expires_at)


def sign_visit(
    *, user_ref: str, campaign: str, amount: Decimal, jti: str, expires_at: datetime, secret: str
) -> str:
    """
    Return the last part of a visit link's path; the first visit before `expires_at` earns `amount`.

    Raises:
        ValueError: the amount or the campaign does not fit into a link.
    """
    if amount.adjusted() >= _MAX_DIGITS or round(amount, _MAX_DIGITS) != amount:
        raise ValueError("an amount has at most twelve digits before and after the point")
    fields = {
        "amount": f"{amount:f}",
        "campaign": campaign,
        "exp": int(expires_at.timestamp()),
        "jti": jti,
        "user": user_ref,
    }
    content = unpadded(json.dumps(fields, separators=(",", ":")).encode())
    token = f"{content}.{base64url_hmac('sha256', content.encode())(secret.encode())}"
    if len(token) > MAX_PATH_TOKEN_LENGTH:
        raise ValueError("the campaign's name is too long for a link")
    return token
