"""What a network's adapter makes of an address that staff have before them; nothing is stored."""

import re
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings

from credits.benefits import earned_credits
from credits.models import AdNetwork, Postback, PostbackKind
from credits.networks.contract import Adapter, PostbackEvent, PostbackPostponed, PostbackRefused, RawRequest
from credits.networks.registry import ADAPTERS
from credits.services import ad_networks, earnings
from gateway.common.owner import ProfileOwner

_PATH = re.compile(r"/api/postbacks/(?P<slug>[^/]+)/(?P<token>[^/]+)/?")


class Verdict(NamedTuple):
    """Whether such a postback would be believed, in a sentence, and what it says."""

    is_believed: bool
    sentence: str
    facts: list[tuple[str, str]]


def can_be_tried(network: AdNetwork) -> bool:
    """Tell whether the network calls an address at all."""
    adapter = ADAPTERS.get(network.slug)
    return adapter is not None and bool(adapter.methods)


def judge(*, network: AdNetwork, address: str, signature: str, now: datetime) -> Verdict:
    """
    Say what would come of a GET of that address now, wherever it came from; `signature` is the header's, if any.

    The network may still be disabled. Its address list is not asked, since staff are not the network.
    """
    adapter = ADAPTERS.get(network.slug)
    if adapter is None or not adapter.methods:
        return _refused("This network calls nothing.")
    try:
        parts = urlsplit(address)
    except ValueError:
        return _refused("This is no address.")
    found = _PATH.fullmatch(parts.path)
    if found is None or found["slug"] != network.slug:
        return _refused(f"This is no address of {network.slug}.")
    if f"{parts.scheme}://{parts.netloc}" != settings.PUBLIC_URL:
        return _refused(f"Our addresses begin with {settings.PUBLIC_URL}, and networks sign what they call.")
    if adapter.has_path_token and not ad_networks.has_path_token(network, found["token"]):
        return _refused(
            "The end of the path is not the network's: issue a new address, or use the newest one."
        )
    request = RawRequest(
        method="GET",
        url=settings.PUBLIC_URL + parts.path,
        query=parts.query.encode(errors="replace"),
        headers={adapter.signature_header: signature.strip()} if adapter.signature_header else {},
        path_token=found["token"],
    )
    try:
        event, user = earnings.understand(adapter, network, request, now=now)
    except PostbackPostponed as reason:
        return _refused(f"It would be asked to come again: {reason}.")
    except PostbackRefused as reason:
        return _refused(f"It would be refused: {reason}.")
    return Verdict(True, "It would be believed.", _facts(adapter, network, event, user))


def _refused(sentence: str) -> Verdict:
    return Verdict(False, sentence, [])


def _facts(
    adapter: Adapter, network: AdNetwork, event: PostbackEvent, user: ProfileOwner | None
) -> list[tuple[str, str]]:
    worth = earned_credits(amount=abs(event.amount), rate=network.rate, bonus=Decimal(0))
    before = Postback.objects.filter(network=network, external_id=event.external_id, kind=event.kind).first()
    told = [
        ("says", PostbackKind(event.kind).label),
        ("id", event.external_id),
        ("takes back", event.original_id if event.kind == PostbackKind.REVERSAL else ""),
        ("user", str(user.profile_address) if user else ""),
        ("amount", f"{event.amount:f}"),
        ("credits before bonuses", str(worth)),
        ("payout in USD", "" if event.payout_usd is None else f"{event.payout_usd:f}"),
        (
            "at, by the network's clock",
            f"{event.occurred_at:%Y-%m-%d %H:%M:%S} UTC" if event.occurred_at else "",
        ),
        ("came before", before.get_state_display() if before else "no"),
        ("would be answered", adapter.answers.ok.about(event).body),
    ]
    return [(name, fact) for name, fact in told if fact]
