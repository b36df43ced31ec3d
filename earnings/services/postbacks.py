"""
A postback from the network to the account, in a fixed order of checks.

Network enabled → path token → address list → signature → freshness → form → user → ledger.
Whoever fails the first two gets the same 404 as a wrong path; after that it gets the answer
that its network expects.
"""

import logging
from datetime import datetime

from earnings.models import AdNetwork, VerifierKeySet
from earnings.networks.base import (
    Adapter,
    Answer,
    PostbackEvent,
    PostbackPostponed,
    PostbackRefused,
    RawRequest,
    check_freshness,
)
from earnings.networks.registry import ADAPTERS
from earnings.services import networks, posting
from earnings.services.inbox import Arrival
from earnings.services.networks import LONGEST_KEPT
from gateway.common.crypto import SealedUnderAnotherKey
from gateway.common.errors import NotFound
from gateway.common.http import is_within
from users.models import User

logger = logging.getLogger(__name__)


def receive(*, slug: str, request: RawRequest, now: datetime, request_id: str = "") -> Answer:
    """
    Check a postback, store it with what follows from it, and return the answer that the network expects.

    A repeat is answered like the first one and changes nothing. What is refused leaves no row.

    Raises:
        NotFound: there is no such network, it is disabled, does not use the method, or the path's token is not its own.
    """
    adapter, network = _admit(slug, request)
    try:
        _require_listed(network, request)
        event, user = understand(adapter, network, request, now=now)
    except PostbackPostponed as reason:
        logger.error("a postback of %s must come again: %s", slug, reason)
        return adapter.answers.retry
    except PostbackRefused as reason:
        logger.warning("a postback of %s is refused: %s", slug, reason)
        return adapter.answers.reject
    arrival = Arrival(
        network=network,
        event=event,
        user=user,
        raw=_raw(adapter, request),
        received_at=now,
        headers=dict(request.headers),
        request_id=request_id,
    )
    is_first = posting.record(arrival) is not None
    return (adapter.answers.ok if is_first else adapter.answers.duplicate).about(event)


def _admit(slug: str, request: RawRequest) -> tuple[Adapter, AdNetwork]:
    adapter = ADAPTERS.get(slug)
    network = AdNetwork.objects.filter(slug=slug, is_enabled=True).first()
    if adapter is None or network is None or request.method not in adapter.methods:
        raise NotFound("There is nothing at this address.")
    if adapter.has_path_token and not networks.has_path_token(network, request.path_token):
        raise NotFound("There is nothing at this address.")
    return adapter, network


def _require_listed(network: AdNetwork, request: RawRequest) -> None:
    if network.allowed_addresses and not is_within(request.sender, network.allowed_addresses):
        raise PostbackRefused("the sender's address is not on the list")


def understand(
    adapter: Adapter, network: AdNetwork, request: RawRequest, *, now: datetime
) -> tuple[PostbackEvent, User | None]:
    """
    Return what the network says and about whom, once its signature and time have been checked. Nothing is stored.

    Raises:
        PostbackRefused: the network did not say this, or says nothing that could be believed.
        PostbackPostponed: it cannot be judged now.
    """
    keys = {} if adapter.needs_secret else _verifier_keys(adapter.slug, now=now)
    fields = adapter.verify(request, secrets=_secrets(network), keys=keys)
    event = adapter.parse(fields)
    check_freshness(adapter, event, now=now)
    if adapter.signs_for_all and event.is_about_credits and event.ad_unit not in network.allowed_ad_units:
        raise PostbackRefused("the ad unit is not on the list")
    return event, _user_of(network, event)


def _secrets(network: AdNetwork) -> list[str]:
    try:
        return networks.live_secrets(network)
    except SealedUnderAnotherKey as error:
        raise PostbackPostponed("no key of AD_NETWORK_SECRET_KEYS opens a secret") from error


def _verifier_keys(slug: str, *, now: datetime) -> dict[str, str]:
    fetched = VerifierKeySet.objects.filter(slug=slug, fetched_at__gt=now - LONGEST_KEPT).first()
    return fetched.keys if fetched else {}


def _user_of(network: AdNetwork, event: PostbackEvent) -> User | None:
    user = networks.user_named(network=network, reference=event.user_ref)
    if user is None and event.is_about_credits:
        raise PostbackRefused("unknown user")
    return user


def _raw(adapter: Adapter, request: RawRequest) -> bytes:
    """Return what to keep: the query or the body; of a signed path the content without its signature."""
    if not adapter.has_path_token:
        return request.path_token.partition(".")[0].encode()
    return request.body or request.query
