"""The interface of an adapter: verify a network's signature, parse its postbacks, and give its expected responses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import ClassVar, Protocol

from credits.models import EntrySource
from earnings.models import PostbackKind

# Values by name. `covers` lists the signed ones.
SignedFields = Mapping[str, str]
# The path's last part, as accepted by the routes.
MAX_PATH_TOKEN_LENGTH = 1024
# A signature without one of these is weak.
ESSENTIAL = frozenset({"amount", "user", "external_id"})


class PostbackRefused(Exception):
    """The network did not send this request, or every repeat of it would be refused, too."""


class MacroNotReplaced(PostbackRefused):
    """The network has sent a macro of its dashboard instead of a value."""

    def __init__(self, *, macro: str, name: str) -> None:
        super().__init__(f"the macro {macro} of {name} was not replaced")


class PostbackPostponed(Exception):
    """The request cannot be verified now: a secret or a verifier key is missing. A repeat may be accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRequest:
    """A raw request: `url` is our public URL without the query; `query` and `body` are unparsed bytes."""

    method: str
    url: str
    query: bytes
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    path_token: str = ""
    sender: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostbackEvent:
    """
    An event in the network's own unit: `amount` times the network's rate are credits.

    `original_id` is the id of the reversed credit, by default `external_id`. `user_ref` may be empty if no
    user is credited. A reversal takes its amount back; without an amount, or where it `takes_all`, everything.
    """

    kind: PostbackKind
    external_id: str
    user_ref: str
    amount: Decimal
    original_id: str = ""
    takes_all: bool = False
    payout_usd: Decimal | None = None
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    ad_unit: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "original_id", self.original_id or self.external_id)

    @property
    def takes_back(self) -> Decimal | None:
        """Return the amount that a reversal takes back, or None for everything."""
        if self.kind != PostbackKind.REVERSAL or self.takes_all or not self.amount:
            return None
        return abs(self.amount)

    @property
    def is_about_credits(self) -> bool:
        return self.kind not in {PostbackKind.INFO, PostbackKind.TEST}


_REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PostbackResponse:
    """The status and the text of a response that the network expects."""

    status: int
    body: str = ""

    def because(self, reason: object) -> "PostbackResponse":
        """Append the reason, unless the network expects a fixed text."""
        return PostbackResponse(self.status, f"{self.body}: {reason}" if self.body == _REFUSED else self.body)

    def about(self, event: PostbackEvent) -> "PostbackResponse":
        return PostbackResponse(self.status, self.body.replace("{event_id}", event.external_id))


@dataclass(frozen=True, slots=True)
class PostbackResponses:
    """The responses: handled, refused permanently, and retry later."""

    ok: PostbackResponse
    reject: PostbackResponse
    retry: PostbackResponse = PostbackResponse(503, "try again later")


OK_OR_400 = PostbackResponses(ok=PostbackResponse(200, "OK"), reject=PostbackResponse(400, _REFUSED))


class Adapter(Protocol):
    """One network. `covers` has the fields that its signature authenticates."""

    slug: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[EntrySource]
    covers: ClassVar[frozenset[str]]
    responses: ClassVar[PostbackResponses] = OK_OR_400
    methods: ClassVar[frozenset[str]] = frozenset({"GET"})
    # Maximum difference of a signed time from now.
    max_age: ClassVar[timedelta | None] = None
    needs_secret: ClassVar[bool] = True
    # Whether its keys sign for every publisher, so that our ad units must be listed.
    signs_for_all: ClassVar[bool] = False
    # Whether the path ends in the network's token, verified before the signature.
    has_path_token: ClassVar[bool] = True
    # The name of the signature header, in lower case.
    signature_header: ClassVar[str] = ""
    # Whether staff import its earnings from files.
    has_reports: ClassVar[bool] = False
    # The public page with a postback signed by the network, which the tests replay. Without one, only the network's
    # test postback verifies the adapter.
    proven_by: ClassVar[str] = ""
    # Query parameters of the URL that staff enter at the network.
    template: ClassVar[str] = ""

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        """
        Return the fields of a request that one of `secrets` or `keys` (PEM by key id) signed.

        Raises:
            PostbackRefused: it is not signed by one of them, or a parameter is duplicate.
            PostbackPostponed: the key that signed it has not been fetched yet.
        """

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """
        Return the event of these fields.

        Raises:
            PostbackRefused: a field is missing or malformed.
        """


def is_weak(adapter: Adapter) -> bool:
    """Return whether the network's signature omits the user, the amount or the id."""
    return not adapter.covers >= ESSENTIAL


def check_freshness(adapter: Adapter, event: PostbackEvent, *, now: datetime) -> None:
    """
    Refuse a postback whose signed time is too far from now.

    Raises:
        PostbackRefused: the postback is stale.
    """
    if event.expires_at is not None and now >= event.expires_at:
        raise PostbackRefused("expired")
    if adapter.max_age is None or "occurred_at" not in adapter.covers:
        return
    if event.occurred_at is None or abs(now - event.occurred_at) > adapter.max_age:
        raise PostbackRefused("stale timestamp")
