"""API keys of sponsors: stored as hashes and shown once. Rotation has a day of overlap; revocation is immediate."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet

from gateway.common.http import is_within
from gateway.staff import audit
from sponsors.errors import KeyNetworkRefused, KeyRefused, TooManyKeys
from sponsors.models import ApiKey, Sponsor
from users.models import User

# Distinguishes a key from an access token.
PREFIX = "sponsor_"
MOST_KEYS = 20
# How long a rotated key keeps working.
OVERLAP = timedelta(hours=24)
# The time of last use is written at most this often, so that not every request writes the key's row.
_COARSE = timedelta(hours=1)
_BYTES, _HINT = 32, 4


class NewKey(NamedTuple):
    """A key and its text; only the text's hash is stored."""

    row: ApiKey
    text: str


@transaction.atomic
def create(
    *,
    sponsor: Sponsor,
    name: str,
    scopes: Sequence[str],
    networks: Sequence[str],
    actor: User,
    now: datetime,
) -> NewKey:
    """
    Create a key with these rights. It is accepted only from these networks, or from anywhere if there are none.

    The audit log records the member `actor`.

    Raises:
        TooManyKeys: the sponsor has `MOST_KEYS` valid keys.
    """
    Sponsor.objects.select_for_update(no_key=True).get(pk=sponsor.pk)
    if working(sponsor, now=now).count() >= MOST_KEYS:
        raise TooManyKeys(f"A sponsor has at most {MOST_KEYS} keys.", limit=MOST_KEYS)
    text = PREFIX + secrets.token_urlsafe(_BYTES)
    row = ApiKey.objects.create(
        sponsor=sponsor,
        name=name,
        key_hash=_hash(text),
        hint=text[-_HINT:],
        scopes=list(scopes),
        networks=list(networks),
    )
    _record(actor, row, "make a key")
    return NewKey(row, text)


@transaction.atomic
def rotate(*, key: ApiKey, actor: User, now: datetime) -> NewKey:
    """
    Create a key that replaces this one. The old key stays valid for `OVERLAP`, but not beyond its previous expiry.

    Raises:
        TooManyKeys: the sponsor has `MOST_KEYS` valid keys.
    """
    new = create(
        sponsor=key.sponsor, name=key.name, scopes=key.scopes, networks=key.networks, actor=actor, now=now
    )
    ends_at = min(filter(None, (key.expires_at, now + OVERLAP)))
    ApiKey.objects.filter(pk=key.pk).update(expires_at=ends_at)
    return new


@transaction.atomic
def revoke(*, key: ApiKey, now: datetime, actor: User | None = None) -> None:
    """Revoke the key at once. Pass the member as `actor` for the audit log; the admin records staff by itself."""
    if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now) and actor is not None:
        _record(actor, key, "revoke a key")


def _record(actor: User, key: ApiKey, action: str) -> None:
    audit.record(actor=actor, row=key, action=action, changes={"scopes": ("", ", ".join(key.scopes))})


def working(sponsor: Sponsor, *, now: datetime) -> QuerySet[ApiKey]:
    """Return the sponsor's valid keys, oldest first."""
    ends_later = Q(expires_at=None) | Q(expires_at__gt=now)
    return ApiKey.objects.filter(ends_later, sponsor=sponsor, revoked_at=None).order_by("pk")


def used(*, text: str, address: str, now: datetime) -> ApiKey:
    """
    Return the key with this text, and record its use; `address` is the caller's network address.

    Raises:
        KeyRefused: the key is unknown, expired or revoked.
        KeyNetworkRefused: the key is not accepted from this address.
    """
    key = (
        ApiKey.objects.select_related("sponsor__credit_account")
        .filter(key_hash=_hash(text), revoked_at=None)
        .first()
    )
    if key is None or (key.expires_at is not None and key.expires_at <= now):
        raise KeyRefused("The key is unknown, has expired, or was revoked.")
    if key.networks and not is_within(address, key.networks):
        raise KeyNetworkRefused(f"The key is not accepted from {address}.", address=address)
    if key.last_used_at is None or key.last_used_at < now - _COARSE:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _COARSE)
        ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)
    return key


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
