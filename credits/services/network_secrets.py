"""
What networks sign with: two live secrets each, sealed in the records.

Some signatures need the secret itself, so a hash would not do.
"""

from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from credits.models import AdNetwork
from credits.services import ad_networks
from gateway.common.sealing import SealedUnderAnotherKey, seal, unseal

_PURPOSE = "credits.ad-network-secret"


class Resealed(NamedTuple):
    """How many secrets are sealed under the first key now, and the networks with one that no key opens."""

    secrets: int
    unreadable: list[str]


def live_secrets(network: AdNetwork) -> list[str]:
    """
    Return the secrets that a postback may be signed with, the newest first.

    Raises:
        SealedUnderAnotherKey: one of them cannot be read, so no signature can be checked.
    """
    return [_opened(sealed) for sealed in network.sealed_secrets]


@transaction.atomic
def set_secret(*, slug: str, secret: str, now: datetime) -> None:
    """
    Let the network sign with a new secret; the one before it stays live until `retire_secret`.

    Raises:
        ValueError: the secret is empty.
    """
    secret = secret.strip()
    if not secret:
        raise ValueError("a secret is not empty")
    network = _locked(ad_networks.ensure(slug=slug).slug)
    if network.current_secret and _is(network.current_secret, secret):
        return
    network.previous_secret, network.current_secret = network.current_secret, _sealed(secret)
    network.secret_changed_at = now
    network.save(update_fields=["previous_secret", "current_secret", "secret_changed_at"])


def retire_secret(*, slug: str) -> None:
    """Accept signatures by the newest secret alone."""
    AdNetwork.objects.filter(slug=slug).update(previous_secret="")


def seal_anew() -> Resealed:
    """Seal every secret under the first key, so that the other keys can be thrown away; what none opens stays."""
    secrets, unreadable = 0, []
    for slug in list(AdNetwork.objects.order_by("slug").values_list("slug", flat=True)):
        try:
            secrets += _seal_anew(slug)
        except SealedUnderAnotherKey:
            unreadable.append(slug)
    return Resealed(secrets, unreadable)


@transaction.atomic
def _seal_anew(slug: str) -> int:
    network = _locked(slug)
    network.current_secret = _again(network.current_secret)
    network.previous_secret = _again(network.previous_secret)
    network.save(update_fields=["current_secret", "previous_secret"])
    return len(network.sealed_secrets)


def _again(sealed: str) -> str:
    return _sealed(_opened(sealed)) if sealed else ""


def _locked(slug: str) -> AdNetwork:
    return AdNetwork.objects.select_for_update(no_key=True).get(slug=slug)


def _is(sealed: str, secret: str) -> bool:
    """Return whether it is that secret; one that cannot be read is another."""
    try:
        return _opened(sealed) == secret
    except SealedUnderAnotherKey:
        return False


def _sealed(secret: str) -> str:
    return seal(secret, keys=settings.AD_NETWORK_SECRET_KEYS, purpose=_PURPOSE)


def _opened(sealed: str) -> str:
    return unseal(sealed, keys=settings.AD_NETWORK_SECRET_KEYS, purpose=_PURPOSE)
