"""A postback trial by staff: the result that a URL would have. Nothing is stored."""

import re
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings

from earnings.models import AdNetwork, Postback, PostbackKind
from earnings.networks import ADAPTERS
from earnings.networks.base import Adapter, PostbackEvent, PostbackPostponed, PostbackRefused, RawRequest
from earnings.services import networks, postbacks
from rewards.rules import earned_credits
from users.models import User

_PATH = re.compile(r"/api/postbacks/(?P<slug>[^/]+)/(?P<token>[^/]+)/?")


class AcceptedPostback(NamedTuple):
    event: PostbackEvent
    user: User | None
    # Credits before bonuses.
    credits: int
    # The same postback, if it was received before.
    first: Postback | None
    response: str

    def details(self) -> list[tuple[str, str]]:
        """Return the values by label, without missing ones."""
        event, user, first = self.event, self.user, self.first
        occurred_at = f"{event.occurred_at:%Y-%m-%d %H:%M:%S} UTC" if event.occurred_at else ""
        values = [
            ("kind", PostbackKind(event.kind).label),
            ("id", event.external_id),
            ("takes back", event.original_id if event.kind == PostbackKind.REVERSAL else ""),
            ("user", str(user.profile_address) if user else ""),
            ("amount", f"{event.amount:f}"),
            ("credits before bonuses", str(self.credits)),
            ("payout in USD", "" if event.payout_usd is None else f"{event.payout_usd:f}"),
            ("at, by the network's clock", occurred_at),
            ("received before", first.get_state_display() if first else "no"),
            ("response", self.response),
        ]
        return [(label, value) for label, value in values if value]


class TrialResult(NamedTuple):
    sentence: str
    accepted: AcceptedPostback | None = None


class _WrongAddress(Exception):
    """The network would not call this URL; the argument is the reason."""


def can_be_tried(network: AdNetwork) -> bool:
    adapter = ADAPTERS.get(network.slug)
    return adapter is not None and bool(adapter.methods)


def try_postback(
    *, network: AdNetwork, address: str, signature: str, now: datetime, body: str = ""
) -> TrialResult:
    """
    Return the result of a GET of that URL, or of a POST with a body, from any sender.

    `signature` is the header's, if any.

    The network may be disabled. Its address list is ignored, since staff send from elsewhere.
    """
    adapter = ADAPTERS.get(network.slug)
    if adapter is None or not adapter.methods:
        return TrialResult("This network sends no postbacks.")
    try:
        request = _request(adapter, network, address, signature, body)
        event, user = postbacks.verify(adapter, network, request, now=now)
    except _WrongAddress as reason:
        return TrialResult(str(reason))
    except PostbackPostponed as reason:
        return TrialResult(f"It would be postponed: {reason}.")
    except PostbackRefused as reason:
        return TrialResult(f"It would be refused: {reason}.")
    first = Postback.objects.filter(network=network, external_id=event.external_id, kind=event.kind).first()
    accepted = AcceptedPostback(
        event=event,
        user=user,
        credits=earned_credits(amount=abs(event.amount), rate=network.rate, bonus=Decimal(0)),
        first=first,
        response=adapter.responses.ok.about(event).body,
    )
    if user is None and event.is_about_credits:
        return TrialResult("It would be stored without a credit: it names no user's reference.", accepted)
    return TrialResult("It would be accepted.", accepted)


def _request(adapter: Adapter, network: AdNetwork, address: str, signature: str, body: str) -> RawRequest:
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise _WrongAddress("This is not a URL.") from error
    path = _PATH.fullmatch(parts.path)
    if path is None or path["slug"] != network.slug:
        raise _WrongAddress(f"This is not a URL of {network.slug}.")
    if f"{parts.scheme}://{parts.netloc}" != settings.PUBLIC_URL:
        raise _WrongAddress(
            f"Our URLs begin with {settings.PUBLIC_URL}, and networks sign the URL that they call."
        )
    if adapter.has_path_token and not networks.has_path_token(network, path["token"]):
        raise _WrongAddress("The path's token is not valid: issue a new address, or use the newest one.")
    return RawRequest(
        method="POST" if body else "GET",
        url=settings.PUBLIC_URL + parts.path,
        query=parts.query.encode(errors="replace"),
        body=body.encode(),
        headers={adapter.signature_header: signature.strip()} if adapter.signature_header else {},
        path_token=path["token"],
    )
