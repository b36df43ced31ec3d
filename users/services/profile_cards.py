"""
The name and picture of a profile (LSP-3), read at most once a day, by a worker.

The content is untrusted. Only public addresses are fetched (`gateway.common.public_http`), responses are bounded and
must match the hash stored on chain, and a picture must be of a type that cannot contain scripts. On any error there is
no card, and no request waits for one.
"""

import json
import logging
from base64 import b64decode, b64encode
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote_to_bytes

from django.conf import settings

from gateway.chain.client import get_chain_client
from gateway.chain.errors import NodeUnavailable
from gateway.chain.lsp3 import PROFILE_KEY, VerifiableUri, decode_verifiable_uri
from gateway.common import public_http
from gateway.common.tasks import enqueue_on_commit
from users.models import ProfileCard, User

logger = logging.getLogger(__name__)
KEPT = timedelta(days=1)
_MAX_JSON, _MAX_PICTURE = 64 * 1024, 256 * 1024
_MAX_NAME = 80
_SECONDS = 5.0
_WANTED_WIDTH = 96
_KINDS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"))


class NoCard(Exception):
    """The profile has no usable name and picture; the text is the reason."""


def refresh_if_old(*, user: User, now: datetime) -> None:
    """Enqueue a task that reads the card after the commit, unless it was read recently or cards are switched off."""
    if not settings.IPFS_GATEWAY_URL:
        return
    if not ProfileCard.objects.filter(user=user, refreshed_at__gt=now - KEPT).exists():
        enqueue_on_commit("users.refresh_profile_card", user_id=user.pk)


def refresh(*, user_id: int, now: datetime) -> None:
    """Read the card and store it; an invalid card is stored as empty, an unreachable one is left unchanged."""
    user = User.objects.filter(pk=user_id, is_active=True, profile_address__isnull=False).first()
    if user is None or not settings.IPFS_GATEWAY_URL:
        return
    card: dict[str, Any] = {"name": "", "picture": b"", "picture_type": ""}
    try:
        profile = _metadata(str(user.profile_address))
        card["name"] = _name_in(profile)
        card["picture"], card["picture_type"] = _picture_in(profile)
    except (NodeUnavailable, public_http.NoResponse) as error:
        logger.info("the card of user %s is unchanged: %s", user_id, error)
        ProfileCard.objects.update_or_create(user=user, defaults={"refreshed_at": now})
        return
    except (NoCard, public_http.AddressRefused) as error:
        logger.info("user %s has no complete card: %s", user_id, error)
    ProfileCard.objects.update_or_create(user=user, defaults={**card, "refreshed_at": now})


def picture_uri(card: ProfileCard | None) -> str | None:
    """Return the picture as a `data:` URL; None without one."""
    if card is None or not card.picture:
        return None
    return f"data:image/{card.picture_type};base64,{b64encode(bytes(card.picture)).decode()}"


def card_of(user: User) -> ProfileCard | None:
    return ProfileCard.objects.filter(user=user).first()


def _metadata(profile_address: str) -> dict[str, Any]:
    uri = decode_verifiable_uri(get_chain_client().read_data(profile=profile_address, key=PROFILE_KEY))
    if uri is None:
        raise NoCard("the profile has no verifiable URL")
    try:
        document = json.loads(_fetch(uri, _MAX_JSON))
    except (ValueError, RecursionError) as error:
        raise NoCard("no JSON") from error
    profile = document.get("LSP3Profile") if isinstance(document, dict) else None
    if not isinstance(profile, dict):
        raise NoCard("no LSP3Profile")
    return profile


def _name_in(profile: dict[str, Any]) -> str:
    name = profile.get("name")
    if not isinstance(name, str):
        return ""
    return "".join(letter for letter in name if letter.isprintable()).strip()[:_MAX_NAME]


def _picture_in(profile: dict[str, Any]) -> tuple[bytes, str]:
    """Return the smallest picture that is large enough, and its type."""
    listed = profile.get("profileImage")
    usable = [uri for uri in map(_uri_of, listed if isinstance(listed, list) else []) if uri is not None]
    if not usable:
        raise NoCard("no picture with a hash")
    _, uri = min(usable, key=lambda pair: (pair[0] < _WANTED_WIDTH, abs(pair[0] - _WANTED_WIDTH)))
    content = _fetch(uri, _MAX_PICTURE)
    kind = next((name for magic, name in _KINDS if content.startswith(magic)), "")
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "webp"
    if not kind:
        raise NoCard("the picture's type is not supported")
    return content, kind


def _uri_of(image: Any) -> tuple[int, VerifiableUri] | None:
    """Return the width and the address of a listed picture; None if it has no hash."""
    try:
        verification = image["verification"]
        if verification["method"] != "keccak256(bytes)":
            return None
        return int(image["width"]), VerifiableUri(
            str(image["url"]), bytes.fromhex(verification["data"].removeprefix("0x"))
        )
    except (TypeError, KeyError, ValueError, OverflowError, AttributeError):
        return None


def _fetch(uri: VerifiableUri, most: int) -> bytes:
    scheme, _, rest = uri.url.partition(":")
    if scheme == "data":
        content = _inline(rest)
    else:
        url = f"{settings.IPFS_GATEWAY_URL}/{rest.removeprefix('//')}" if scheme == "ipfs" else uri.url
        response = public_http.get(
            url, seconds=_SECONDS, allowed=public_http.Exceptions(), response_bytes=most + 1
        )
        if response.status != 200:
            raise NoCard(f"status {response.status}")
        content = response.body
    if len(content) > most:
        raise NoCard(f"more than {most} bytes")
    if not uri.is_of(content):
        raise NoCard("the hash differs from the one on chain")
    return content


def _inline(rest: str) -> bytes:
    head, _, body = rest.partition(",")
    try:
        return b64decode(body, validate=True) if head.endswith(";base64") else unquote_to_bytes(body)
    except ValueError as error:
        raise NoCard("malformed base64") from error
