"""TheoremReach: surveys."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from credits.models import EntrySource
from earnings.models import PostbackKind
from earnings.networks.base import (
    Adapter,
    PostbackEvent,
    PostbackResponse,
    PostbackResponses,
    RawRequest,
    SignedFields,
)
from earnings.networks.parameters import event_of, flag
from earnings.networks.signatures import base64url_hmac, signed_url


class TheoremReach(Adapter):
    """HMAC-SHA1 of the whole URL before `&hash=`, in URL-safe base64. Flags are `1` and `0`."""

    slug: ClassVar = "theoremreach"
    title: ClassVar = "TheoremReach"
    kind: ClassVar = EntrySource.SURVEYS
    covers: ClassVar = frozenset({"external_id", "user", "amount"})
    responses: ClassVar = PostbackResponses(ok=PostbackResponse(200, "1"), reject=PostbackResponse(400, "0"))

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        return signed_url(request, name="hash", secrets=secrets, hmac_of=partial(base64url_hmac, "sha1"))

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read a reward, its reversal, or a debug callback, which credits no user."""
        is_reversal, is_test = flag(fields, "reversal"), flag(fields, "debug")
        kind = PostbackKind.TEST if is_test else PostbackKind.REVERSAL if is_reversal else None
        return event_of(fields, id_="tx_id", user="user_id", amount="reward", kind=kind)
