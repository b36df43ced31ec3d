"""The interface of an adapter: what its network signs, what a postback means, which answers the network expects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import ClassVar, Protocol

from credits.models import EntrySource
from earnings.models import PostbackKind

# Values by name. Where a network signs too little, some of them are unsigned; `covers` says which are signed.
SignedFields = Mapping[str, str]
# Of the last part of the path, as the routes take it.
MAX_PATH_TOKEN_LENGTH = 1024
# A postback whose signature leaves one of these out proves little.
ESSENTIAL = frozenset({"amount", "user", "external_id"})


class PostbackRefused(Exception):
    """The network did not send this, or a repeat could not make it acceptable."""


class PostbackPostponed(Exception):
    """It cannot be judged now: a secret or a verifier key is missing. A repeat may be accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRequest:
    """A request as it arrived: `url` is our public address without the query, `query` and `body` are unread bytes."""

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
    What happened, in the network's own unit: `amount` times the network's rate makes credits.

    `original_id` is the credit that a reversal undoes; left out, it is `external_id` itself. `user_ref` may
    be empty where no user is credited. A reversal takes everything back unless `takes_back` says how much.
    """

    kind: PostbackKind
    external_id: str
    user_ref: str
    amount: Decimal
    original_id: str = ""
    takes_back: Decimal | None = None
    payout_usd: Decimal | None = None
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    ad_unit: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "original_id", self.original_id or self.external_id)

    @property
    def is_about_credits(self) -> bool:
        return self.kind not in {PostbackKind.INFO, PostbackKind.TEST}


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and text that the network understands."""

    status: int
    body: str = ""

    def about(self, event: PostbackEvent) -> "Answer":
        return Answer(self.status, self.body.replace("{event_id}", event.external_id))


@dataclass(frozen=True, slots=True)
class Answers:
    """Handled, now or before; never send it again; send it again later."""

    ok: Answer
    reject: Answer
    retry: Answer = Answer(503, "try again later")


OK_OR_400 = Answers(ok=Answer(200, "OK"), reject=Answer(400, "refused"))


class Adapter(Protocol):
    """One network. `covers` names the fields that its signature authenticates."""

    slug: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[EntrySource]
    covers: ClassVar[frozenset[str]]
    answers: ClassVar[Answers] = OK_OR_400
    methods: ClassVar[frozenset[str]] = frozenset({"GET"})
    # How old, or how far ahead, a signed time may be.
    max_age: ClassVar[timedelta | None] = None
    needs_secret: ClassVar[bool] = True
    # Its keys sign for the ad units of every publisher, so ours are listed.
    signs_for_all: ClassVar[bool] = False
    # The path's last part is the network's own token, checked before the signature.
    has_path_token: ClassVar[bool] = True
    # Of the header that carries its signature, in lower case.
    signature_header: ClassVar[str] = ""
    # Staff import its earnings from files.
    has_reports: ClassVar[bool] = False
    # The public page with a postback that the network itself has signed, which the tests replay. Without one, only a
    # test postback of the network proves the adapter.
    proven_by: ClassVar[str] = ""
    # Query parameters of the address that staff paste into the network's page.
    template: ClassVar[str] = ""

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        """
        Return the fields of a request that one of `secrets` or `keys` (PEM by key id) signed.

        Raises:
            PostbackRefused: it is not signed by one of them, or a parameter comes twice.
            PostbackPostponed: the key that signed it has not been fetched yet.
        """

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """
        Return what the fields mean.

        Raises:
            PostbackRefused: a field is missing or malformed.
        """


def is_weak(adapter: Adapter) -> bool:
    """Return whether the network's signature leaves out the user, the amount or the id."""
    return not adapter.covers >= ESSENTIAL


def check_freshness(adapter: Adapter, event: PostbackEvent, *, now: datetime) -> None:
    """
    Refuse what is too old or from the future, going by a signed time.

    Raises:
        PostbackRefused: it is stale.
    """
    if event.expires_at is not None and now >= event.expires_at:
        raise PostbackRefused("expired")
    if adapter.max_age is None or "occurred_at" not in adapter.covers:
        return
    if event.occurred_at is None or abs(now - event.occurred_at) > adapter.max_age:
        raise PostbackRefused("stale timestamp")
