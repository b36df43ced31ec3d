"""
Ad networks: settings, addresses, secrets, and the references of our users.

Each network has up to two valid secrets, encrypted in the database: some signatures need the secret itself, so a hash
is not enough. A reference is opaque and belongs to one user at one network. A periodic task fetches Google's verifier
keys, so a postback never waits for another service.
"""

import hashlib
import hmac
import logging
import secrets
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.crypto import salted_hmac

from earnings import queries
from earnings.errors import NetworkUnguarded
from earnings.models import AdNetwork, NetworkUser, VerifierKeySet
from earnings.networks import ADAPTERS
from earnings.networks.base import is_weak
from earnings.networks.parameters import REFERENCE_LENGTH, is_reference
from gateway.common.crypto import Resealed, SealedUnderAnotherKey, reseal, seal, unseal
from gateway.common.http import FetchFailed, fetch_json
from users.models import User

logger = logging.getLogger(__name__)
_PATH_TOKEN_BYTES = 32
_SEAL_PURPOSE = "earnings.network-secret"
_REFERENCE_SALT = "earnings.network-user"
_ADMOB = "admob"
# Google requires caching its keys for at most a day. Postbacks with an unknown key are postponed.
MAX_VERIFIER_KEY_AGE = timedelta(hours=24)


# --- Settings and addresses


def ensure(*, slug: str) -> AdNetwork:
    """
    Return the network's row, created disabled by the first caller.

    Raises:
        KeyError: there is no adapter with that slug.
    """
    adapter = ADAPTERS[slug]
    network, _ = AdNetwork.objects.get_or_create(slug=slug, defaults={"is_weak": is_weak(adapter)})
    return network


@transaction.atomic
def configure(*, slug: str, **values: Any) -> AdNetwork:
    """
    Change settings of a network, by column names. Joins the caller's transaction.

    Raises:
        ValidationError: the values are out of range, or a weak network would be enabled without limits.
        KeyError: there is no adapter with that slug.
    """
    network = _lock(ensure(slug=slug).slug)
    for name, value in values.items():
        setattr(network, name, value)
    # The adapter's current value applies, not that of the row.
    network.is_weak = is_weak(ADAPTERS[slug])
    network.full_clean()
    network.save(update_fields=[*values, "is_weak"])
    return network


def switch(*, slug: str, is_enabled: bool) -> bool:
    """
    Enable or pause a network; return False if nothing changes.

    Raises:
        NetworkUnguarded: the network's postbacks could be forged, and it lacks limits.
    """
    if not AdNetwork.objects.filter(slug=slug, is_enabled=not is_enabled).exists():
        return False
    try:
        configure(slug=slug, is_enabled=is_enabled)
    except ValidationError as error:
        # The form's rule equals the database constraint.
        raise NetworkUnguarded(" ".join(dict.fromkeys(error.messages))) from error
    return True


def new_path_token() -> str:
    """Return a new token for a network's URL; it is not accepted before `accept_path_token`."""
    return secrets.token_urlsafe(_PATH_TOKEN_BYTES)


def accept_path_token(*, slug: str, token_hash: str) -> None:
    """Accept only the token with that hash in the network's URL."""
    AdNetwork.objects.filter(pk=ensure(slug=slug).pk).update(path_token_hash=token_hash)


def address_of(*, slug: str, token: str) -> str:
    """Return the URL that staff enter at the network, including macros."""
    template = ADAPTERS[slug].template
    return f"{settings.PUBLIC_URL}/api/postbacks/{slug}/{token}" + (f"?{template}" if template else "")


def has_path_token(network: AdNetwork, token: str) -> bool:
    """Return, in constant time, whether the token is the network's."""
    return hmac.compare_digest(network.path_token_hash, path_token_hash(token))


def path_token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _lock(slug: str) -> AdNetwork:
    return AdNetwork.objects.select_for_update(no_key=True).get(slug=slug)


# --- Secrets


def live_secrets(network: AdNetwork) -> list[str]:
    """
    Return the secrets that may sign a postback, newest first.

    Raises:
        SealedUnderAnotherKey: one of them cannot be decrypted, so no signature can be verified.
    """
    return [_unseal(sealed) for sealed in network.sealed_secrets]


def sealed(secret: str) -> str:
    """
    Return the encrypted secret, to be stored until it is set.

    Raises:
        ValueError: the secret is empty.
    """
    secret = secret.strip()
    if not secret:
        raise ValueError("a secret must not be empty")
    return _seal(secret)


@transaction.atomic
def set_sealed_secret(*, slug: str, sealed: str, now: datetime) -> None:
    """
    Accept a new secret from `sealed`; the previous one stays valid until `retire_secret`.

    Raises:
        SealedUnderAnotherKey: it can no longer be decrypted.
    """
    network = _lock(ensure(slug=slug).slug)
    if network.current_secret and _equals(network.current_secret, _unseal(sealed)):
        return
    network.previous_secret, network.current_secret = network.current_secret, sealed
    network.secret_changed_at = now
    network.save(update_fields=["previous_secret", "current_secret", "secret_changed_at"])


def retire_secret(*, slug: str) -> None:
    AdNetwork.objects.filter(slug=slug).update(previous_secret="")


def reseal_secrets() -> Resealed:
    """Encrypt every secret under the first key, so that the other keys can be removed; undecryptable ones stay."""
    return reseal(AdNetwork.objects.all(), keys=settings.AD_NETWORK_SECRET_KEYS, purpose=_SEAL_PURPOSE)


def _equals(sealed: str, secret: str) -> bool:
    """Return whether the sealed text is this secret; False if it cannot be decrypted."""
    try:
        return _unseal(sealed) == secret
    except SealedUnderAnotherKey:
        return False


def _seal(secret: str) -> str:
    return seal(secret, keys=settings.AD_NETWORK_SECRET_KEYS, purpose=_SEAL_PURPOSE)


def _unseal(sealed: str) -> str:
    return unseal(sealed, keys=settings.AD_NETWORK_SECRET_KEYS, purpose=_SEAL_PURPOSE)


# --- Users' references


class NetworkReference(NamedTuple):
    """An enabled network, its source, hold time and typical credits, and the user's reference and offers there."""

    network: str
    title: str
    kind: str
    reference: str
    offers_url: str | None
    hold_hours: int
    typical_credits: int | None


def reference_of(*, user: User, network: AdNetwork) -> str:
    """Return the user's reference at the network; the first of concurrent callers stores it."""
    digest = salted_hmac(_REFERENCE_SALT, f"{network.slug}:{user.pk}", algorithm="sha256").hexdigest()
    row = NetworkUser(network=network, user_id=user.pk, reference=digest[:REFERENCE_LENGTH])
    NetworkUser.objects.bulk_create([row], ignore_conflicts=True)
    # A row from before a change of SECRET_KEY keeps its reference.
    return NetworkUser.objects.get(network=network, user_id=user.pk).reference


def references_of(*, user: User) -> list[NetworkReference]:
    enabled = list(AdNetwork.objects.filter(is_enabled=True, slug__in=ADAPTERS).order_by("slug"))
    rows = NetworkUser.objects.filter(user_id=user.pk, network__in=enabled)
    references = dict(rows.values_list("network_id", "reference"))
    typical = queries.typical_credits()
    for network in enabled:
        if network.pk not in references:
            references[network.pk] = reference_of(user=user, network=network)
    return [
        NetworkReference(
            network=network.slug,
            title=ADAPTERS[network.slug].title,
            kind=ADAPTERS[network.slug].kind,
            reference=references[network.pk],
            offers_url=network.offers_of(references[network.pk]),
            hold_hours=network.hold_hours,
            typical_credits=typical.get(network.pk),
        )
        for network in enabled
    ]


def user_of_reference(*, network: AdNetwork, reference: str) -> User | None:
    if not is_reference(reference):
        return None
    row = NetworkUser.objects.select_related("user").filter(network=network, reference=reference).first()
    return row.user if row else None


# --- AdMob's verifier keys


def refresh_verifier_keys(*, now: datetime) -> bool:
    """Fetch and store the keys; return whether that succeeded. Without AdMob, do nothing."""
    if not AdNetwork.objects.filter(slug=_ADMOB, is_enabled=True).exists():
        return False
    try:
        keys = _verifier_keys(fetch_json(settings.ADMOB_KEYS_URL))
    except (FetchFailed, ValueError) as error:
        logger.warning("the verifier keys could not be fetched, the previous ones stay: %s", error)
        return False
    VerifierKeySet.objects.update_or_create(slug=_ADMOB, defaults={"keys": keys, "fetched_at": now})
    return True


def _verifier_keys(document: Any) -> dict[str, str]:
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("the response is not a list of keys")
    keys = {
        str(key["keyId"]): key["pem"]
        for key in listed
        if isinstance(key, dict) and isinstance(key.get("pem"), str) and "keyId" in key
    }
    if not keys:
        raise ValueError("the list has no usable key")
    return keys
