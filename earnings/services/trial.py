"""What a network's adapter makes of an address that staff paste; nothing is stored."""

import re
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings

from earnings.models import AdNetwork, Postback
from earnings.networks.base import Adapter, PostbackEvent, PostbackPostponed, PostbackRefused, RawRequest
from earnings.networks.registry import ADAPTERS
from earnings.services import networks, postbacks
from rewards.benefits import earned_credits
from users.models import User

_PATH = re.compile(r"/api/postbacks/(?P<slug>[^/]+)/(?P<token>[^/]+)/?")


class Meaning(NamedTuple):
    """What a postback that would be accepted says, and what it would lead to."""

    event: PostbackEvent
    user: User | None
    # Credits before bonuses.
    worth: int
    before: Postback | None
    answer: str


class Verdict(NamedTuple):
    """Whether such a postback would be accepted, in a sentence; it would not where there is no meaning."""

    sentence: str
    meaning: Meaning | None = None


class _NotTheirs(Exception):
    """The network does not call this address, for the reason that is the argument."""


def can_be_tried(network: AdNetwork) -> bool:
    """Return whether the network calls an address at all."""
    adapter = ADAPTERS.get(network.slug)
    return adapter is not None and bool(adapter.methods)


def judge(*, network: AdNetwork, address: str, signature: str, now: datetime) -> Verdict:
    """
    Say what a GET of that address would lead to now, wherever it came from; `signature` is the header's, if any.

    The network may still be disabled. Its address list is not checked, since staff are not the network.
    """
    adapter = ADAPTERS.get(network.slug)
    if adapter is None or not adapter.methods:
        return Verdict("This network calls nothing.")
    try:
        request = _request(adapter, network, address, signature)
        event, user = postbacks.understand(adapter, network, request, now=now)
    except _NotTheirs as reason:
        return Verdict(str(reason))
    except PostbackPostponed as reason:
        return Verdict(f"It would be asked to come again: {reason}.")
    except PostbackRefused as reason:
        return Verdict(f"It would be refused: {reason}.")
    same = Postback.objects.filter(network=network, external_id=event.external_id, kind=event.kind)
    meaning = Meaning(
        event=event,
        user=user,
        worth=earned_credits(amount=abs(event.amount), rate=network.rate, bonus=Decimal(0)),
        before=same.first(),
        answer=adapter.answers.ok.about(event).body,
    )
    return Verdict("It would be believed.", meaning)


def _request(adapter: Adapter, network: AdNetwork, address: str, signature: str) -> RawRequest:
    """Return the request that the network would make."""
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise _NotTheirs("This is no address.") from error
    found = _PATH.fullmatch(parts.path)
    if found is None or found["slug"] != network.slug:
        raise _NotTheirs(f"This is no address of {network.slug}.")
    if f"{parts.scheme}://{parts.netloc}" != settings.PUBLIC_URL:
        raise _NotTheirs(f"Our addresses begin with {settings.PUBLIC_URL}, and networks sign what they call.")
    if adapter.has_path_token and not networks.has_path_token(network, found["token"]):
        raise _NotTheirs(
            "The end of the path is not the network's: issue a new address, or use the newest one."
        )
    return RawRequest(
        method="GET",
        url=settings.PUBLIC_URL + parts.path,
        query=parts.query.encode(errors="replace"),
        headers={adapter.signature_header: signature.strip()} if adapter.signature_header else {},
        path_token=found["token"],
    )
