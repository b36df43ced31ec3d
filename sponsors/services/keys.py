"""
API keys of sponsors: stored as hashes and shown once. Rotation has a day of overlap; revocation is immediate.

A key can do what its maker can do, within its scopes. It ends with the maker's membership. Another member who rotates
a key becomes the maker of the new one.
"""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery

from gateway.common.http import is_within
from gateway.staff import audit
from sponsors.errors import KeyNetworkRefused, KeyRefused, TooManyKeys
from sponsors.models import ApiKey, Member, Sponsor
from sponsors.rules.rights import Right, rights_of
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

    It ends with the membership of `actor`, whom the audit log records.

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
        created_by=actor,
    )
    _record(actor, row, "make a key")
    return NewKey(with_maker(ApiKey.objects.filter(pk=row.pk)).get(), text)


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


def end_of_maker(*, sponsor: Sponsor, user: User, now: datetime) -> None:
    """Revoke the keys that this member made, so that they stay refused if the person becomes a member again."""
    ApiKey.objects.filter(sponsor=sponsor, created_by=user, revoked_at=None).update(revoked_at=now)


def _record(actor: User, key: ApiKey, action: str) -> None:
    audit.record(actor=actor, row=key, action=action, changes={"scopes": ("", ", ".join(key.scopes))})


def working(sponsor: Sponsor, *, now: datetime) -> QuerySet[ApiKey]:
    """Return the sponsor's valid keys with their makers, oldest first."""
    ends_later = Q(expires_at=None) | Q(expires_at__gt=now)
    valid = ApiKey.objects.filter(ends_later, sponsor=sponsor, revoked_at=None)
    return with_maker(valid).order_by("pk")


def with_maker(keys: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
    """Annotate keys with `maker_role` and `maker_email`, those of the maker's membership; None after its end."""
    memberships = Member.objects.filter(
        sponsor=OuterRef("sponsor"), user=OuterRef("created_by"), user__is_active=True
    )
    makers = {
        "maker_role": Subquery(memberships.values("role")),
        "maker_email": Subquery(memberships.values("email")),
    }
    return keys.select_related("created_by").annotate(**makers)


def maker_of(key: ApiKey) -> str | None:
    """Return the profile or e-mail address of the maker of a key of `with_maker`; None if it is unknown."""
    profile = key.created_by and key.created_by.profile_address
    return profile or key.maker_email


class UsedKey(NamedTuple):
    """A key, and what it may do."""

    row: ApiKey
    rights: frozenset[Right]


def used(*, text: str, address: str, now: datetime) -> UsedKey:
    """
    Return the key with this text, and record its use; `address` is the caller's network address.

    Raises:
        KeyRefused: the key is unknown, expired or revoked, or its maker is no longer a member.
        KeyNetworkRefused: the key is not accepted from this address.
    """
    keys = with_maker(ApiKey.objects.filter(key_hash=_hash(text), revoked_at=None))
    key = keys.select_related("created_by", "sponsor__credit_account").first()
    if key is None or (key.expires_at is not None and key.expires_at <= now):
        raise KeyRefused("The key is unknown, has expired, or was revoked.")
    if key.created_by is not None and key.maker_role is None:
        raise KeyRefused("The member who made the key is no longer a member. Make a new key.")
    if key.networks and not is_within(address, key.networks):
        raise KeyNetworkRefused(f"The key is not accepted from {address}.", address=address)
    if key.last_used_at is None or key.last_used_at < now - _COARSE:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _COARSE)
        ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)
    scopes = frozenset(map(Right, key.scopes))
    return UsedKey(key, scopes & rights_of(key.maker_role) if key.maker_role else scopes)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
