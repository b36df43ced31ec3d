"""
Endpoints of wallet apps: created, validated, enabled and disabled; and the secrets that sign their messages.

A secret is shown once and stored encrypted. An endpoint has two while a secret is rotated: both sign every message, as
the Standard Webhooks specification requires.
"""

import base64
import secrets
import uuid
from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.db import transaction

from gateway.common.crypto import Resealed, reseal, seal, unseal
from gateway.common.public_http import AddressRefused, Exceptions, require_usable
from sponsors.models import Sponsor
from users.models import User
from webhooks.errors import EndpointDisabled, EndpointRefused, TooManyEndpoints, WebhooksNotConfigured
from webhooks.models import Endpoint, EventType, Message
from webhooks.payloads import Event

_PURPOSE = "webhooks.endpoint-secret"
MOST_OF_SPONSOR = 5
_PREFIX, _SECRET_BYTES = "whsec_", 32


def allowed_addresses() -> Exceptions:
    return Exceptions(http=settings.WEBHOOK_ALLOW_HTTP, loopback=settings.WEBHOOK_ALLOW_LOOPBACK)


def require_address(url: str) -> None:
    """
    Refuse a URL to which messages cannot be posted.

    Raises:
        EndpointRefused: the URL is not https, malformed, or not public.
    """
    try:
        require_usable(url, allowed=allowed_addresses())
    except AddressRefused as refusal:
        raise EndpointRefused(str(refusal)) from refusal


def require_configured() -> None:
    """
    Refuse if secrets cannot be encrypted.

    Raises:
        WebhooksNotConfigured: there is no key.
    """
    if not settings.WEBHOOK_SECRET_KEYS:
        raise WebhooksNotConfigured("Set WEBHOOK_SECRET_KEYS.")


def create(endpoint: Endpoint) -> str:
    """
    Store a new endpoint, and return its secret, which is shown only once.

    Raises:
        EndpointRefused: messages cannot be posted to the URL.
        WebhooksNotConfigured: there is no key to encrypt the secret.
    """
    require_address(endpoint.url)
    secret, endpoint.current_secret = _new_secret()
    endpoint.save(force_insert=True)
    return secret


@transaction.atomic
def create_for_sponsor(
    sponsor: Sponsor, *, url: str, event_types: Sequence[str], maker: User | None
) -> tuple[Endpoint, str]:
    """
    Store a new endpoint of a sponsor; return it with its secret, which is shown only once. It is disabled at the end of
    the maker's membership.

    Raises:
        TooManyEndpoints: the sponsor has the maximum number of endpoints.
        EndpointRefused, WebhooksNotConfigured: see `create`.
    """
    # Serialises requests, so that each one counts the others' endpoints.
    Sponsor.objects.select_for_update(no_key=True).get(pk=sponsor.pk)
    if Endpoint.objects.of_sponsor(sponsor).count() >= MOST_OF_SPONSOR:
        raise TooManyEndpoints(f"A sponsor has at most {MOST_OF_SPONSOR} endpoints. Delete one first.")
    name = f"{sponsor.slug} {secrets.token_hex(4)}"
    types = list(event_types)
    row = Endpoint(name=name, sponsor=sponsor, created_by=maker, url=url, origins=[], event_types=types)
    return row, create(row)


def disable_of_maker(sponsor: Sponsor, maker: User, now: datetime) -> None:
    """Disable the sponsor's endpoints that this member made, because the membership ends."""
    made = Endpoint.objects.of_sponsor(sponsor).enabled().filter(created_by=maker)
    made.update(disabled_at=now, disabled_by=Endpoint.DisabledBy.LEFT)


def delete_of_sponsor(endpoint: Endpoint, *, now: datetime) -> None:
    """Disable a sponsor's endpoint permanently. Its row stays for a while, because a message may be in delivery."""
    Endpoint.objects.filter(pk=endpoint.pk).update(disabled_at=now, disabled_by=Endpoint.DisabledBy.SPONSOR)


@transaction.atomic
def rotate_secret(endpoint: Endpoint) -> str:
    """Return a new secret; the previous one also signs until it is retired."""
    secret, sealed = _new_secret()
    row = Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)
    row.current_secret, row.previous_secret = sealed, row.current_secret
    row.save(update_fields=["current_secret", "previous_secret"])
    return secret


def retire_secret(endpoint: Endpoint) -> None:
    Endpoint.objects.filter(pk=endpoint.pk).update(previous_secret="")


def live_secrets(endpoint: Endpoint) -> list[str]:
    """
    Return the secrets that sign a message, newest first.

    Raises:
        SealedUnderAnotherKey: one of them cannot be decrypted.
    """
    keys = settings.WEBHOOK_SECRET_KEYS
    return [unseal(sealed, keys=keys, purpose=_PURPOSE) for sealed in endpoint.sealed_secrets]


def reseal_secrets() -> Resealed:
    """Encrypt all secrets under the first key, after a key rotation."""
    return reseal(Endpoint.objects.all(), keys=settings.WEBHOOK_SECRET_KEYS, purpose=_PURPOSE)


def disable(endpoint_id: int, *, by: Endpoint.DisabledBy, now: datetime) -> bool:
    """Disable the endpoint; return whether this call disabled it. Waiting messages stay."""
    enabled = Endpoint.objects.filter(pk=endpoint_id).enabled()
    return bool(enabled.update(disabled_at=now, disabled_by=by))


def enable(endpoint: Endpoint, *, now: datetime) -> bool:
    """
    Resume sending, waiting messages first. Return whether the endpoint was disabled.

    Events from the time when it was disabled are not sent, except settlements of calls for which it has a message.
    """
    disabled = Endpoint.objects.filter(pk=endpoint.pk, disabled_at__isnull=False)
    return bool(disabled.update(disabled_at=None, disabled_by="", failing_since=None, enabled_at=now))


def send_test(endpoint: Endpoint, *, now: datetime) -> Message:
    """
    Store a test message.

    Raises:
        EndpointDisabled: the endpoint is disabled.
    """
    if not endpoint.is_enabled:
        raise EndpointDisabled("Enable the endpoint first.")
    key = f"test:{uuid.uuid4()}"
    event = Event(EventType.TEST, 0, now, key, key, {"endpoint": endpoint.name})
    return Message.objects.create(
        endpoint=endpoint,
        type=event.type,
        key=key,
        ordering_key=key,
        body=event.body,
        next_attempt_at=now,
        created_at=now,
    )


def _new_secret() -> tuple[str, str]:
    """Return a new secret, and its encrypted form."""
    require_configured()
    secret = _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
    return secret, seal(secret, keys=settings.WEBHOOK_SECRET_KEYS, purpose=_PURPOSE)
