"""Setting ad networks up: settings, and the address that they send to."""

import hashlib
import hmac
import secrets
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction

from credits.errors import NetworkUnguarded
from credits.models import AdNetwork
from credits.networks.contract import is_weak
from credits.networks.registry import ADAPTERS

_PATH_TOKEN_BYTES = 32


def ensure(*, slug: str) -> AdNetwork:
    """
    Return the network's row, made disabled by the first caller.

    Raises:
        KeyError: there is no adapter of that slug.
    """
    adapter = ADAPTERS[slug]
    network, _ = AdNetwork.objects.get_or_create(slug=slug, defaults={"is_weak": is_weak(adapter)})
    return network


@transaction.atomic
def configure(*, slug: str, **values: Any) -> AdNetwork:
    """
    Change settings of a network by the names of its columns. Joins the caller's transaction.

    Raises:
        ValidationError: the values are out of range, or the network is weak and would be enabled unguarded.
        KeyError: there is no adapter of that slug.
    """
    network = AdNetwork.objects.select_for_update(no_key=True).get(pk=ensure(slug=slug).pk)
    for name, value in values.items():
        setattr(network, name, value)
    # The adapter decides, whatever the row said when it was made.
    network.is_weak = is_weak(ADAPTERS[slug])
    network.full_clean()
    network.save(update_fields=[*values, "is_weak"])
    return network


def switch(*, slug: str, is_enabled: bool) -> bool:
    """
    Let a network's postbacks in or keep them out; False where it was so already.

    Raises:
        NetworkUnguarded: its postbacks could be forged, and nothing limits them.
    """
    changing = AdNetwork.objects.filter(slug=slug).exclude(is_enabled=is_enabled)
    try:
        return changing.exists() and configure(slug=slug, is_enabled=is_enabled).is_enabled == is_enabled
    except ValidationError as error:
        raise NetworkUnguarded(" ".join(error.messages)) from error


def issue_path_token(*, slug: str) -> str:
    """Return a new token for the end of the network's address; the one before it is no longer found."""
    token = secrets.token_urlsafe(_PATH_TOKEN_BYTES)
    AdNetwork.objects.filter(pk=ensure(slug=slug).pk).update(path_token_hash=_hash(token))
    return token


def address_of(*, slug: str, token: str) -> str:
    """Return the address that staff paste into the network's page, macros included."""
    template = ADAPTERS[slug].template
    return f"{settings.PUBLIC_URL}/api/postbacks/{slug}/{token}" + (f"?{template}" if template else "")


def has_path_token(network: AdNetwork, token: str) -> bool:
    """Return, in constant time, whether the token is the network's."""
    return hmac.compare_digest(network.path_token_hash, _hash(token))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
