"""TheoremReach: surveys."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from credits.models import EntrySource
from earnings.models import PostbackKind
from earnings.networks.base import Adapter, Answer, Answers, PostbackEvent, RawRequest, SignedFields
from earnings.networks.parameters import base64url_hmac, flag, identifier, kind_of, number, signed_url


class TheoremReach(Adapter):
    """HMAC-SHA1 of the whole address before `&hash=`, in URL-safe base64. `1` is yes and `0` is no."""

    slug: ClassVar = "theoremreach"
    title: ClassVar = "TheoremReach"
    kind: ClassVar = EntrySource.SURVEYS
    covers: ClassVar = frozenset({"external_id", "user", "amount"})
    answers: ClassVar = Answers(ok=Answer(200, "1"), reject=Answer(400, "0"))

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        return signed_url(request, name="hash", secrets=secrets, hmac_of=partial(base64url_hmac, "sha1"))

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read a reward, its reversal, or a debug callback, which credits nobody."""
        transaction, amount = identifier(fields, "tx_id"), number(fields, "reward")
        kind = kind_of(amount)
        if flag(fields, "reversal"):
            kind = PostbackKind.REVERSAL
        if flag(fields, "debug"):
            kind = PostbackKind.TEST
        return PostbackEvent(
            kind=kind,
            external_id=transaction,
            user_ref=fields.get("user_id", ""),
            amount=amount,
        )
