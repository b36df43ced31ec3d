"""
Endpoints of wallet apps: made, checked, enabled and disabled, and the secrets that sign what is sent to them.

A secret is shown once, to its maker, and stored sealed. An endpoint has two while a new one is taken over: both
sign every message, as the standard has it.
"""

import base64
import secrets
import uuid
from datetime import datetime

from django.conf import settings

from gateway.common.crypto import Resealed, reseal, seal, unseal
from gateway.common.public_http import AddressRefused, Exceptions, require_usable
from webhooks.errors import EndpointDisabled, EndpointRefused, WebhooksNotConfigured
from webhooks.models import Endpoint, EventType, Message
from webhooks.payloads import Event

_PURPOSE = "webhooks.endpoint-secret"
_PREFIX, _SECRET_BYTES = "whsec_", 32


def allowed_addresses() -> Exceptions:
    return Exceptions(http=settings.WEBHOOK_ALLOW_HTTP, loopback=settings.WEBHOOK_ALLOW_LOOPBACK)


def require_address(url: str) -> None:
    """
    Refuse an address that messages could never be posted to.

    Raises:
        EndpointRefused: it is not https, malformed, or names an address that is not public.
    """
    try:
        require_usable(url, allowed=allowed_addresses())
    except AddressRefused as refusal:
        raise EndpointRefused(str(refusal)) from refusal


def require_configured() -> None:
    """
    Refuse where secrets cannot be sealed.

    Raises:
        WebhooksNotConfigured: there is no key.
    """
    if not settings.WEBHOOK_SECRET_KEYS:
        raise WebhooksNotConfigured("Set WEBHOOK_SECRET_KEYS.")


def create(endpoint: Endpoint) -> str:
    """
    Store a new endpoint, and return its secret, which is not shown again.

    Raises:
        EndpointRefused: messages could never be posted there.
        WebhooksNotConfigured: there is no key to seal the secret with.
    """
    require_address(endpoint.url)
    secret, endpoint.current_secret = _new_secret()
    endpoint.save(force_insert=True)
    return secret


def rotate_secret(endpoint: Endpoint) -> str:
    """Return a new secret; the one before it signs as well until it is retired."""
    secret, sealed = _new_secret()
    row = Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)
    row.current_secret, row.previous_secret = sealed, row.current_secret
    row.save(update_fields=["current_secret", "previous_secret"])
    return secret


def retire_secret(endpoint: Endpoint) -> None:
    Endpoint.objects.filter(pk=endpoint.pk).update(previous_secret="")


def live_secrets(endpoint: Endpoint) -> list[str]:
    """
    Return the secrets that sign a message, the newest first.

    Raises:
        SealedUnderAnotherKey: one of them cannot be read.
    """
    keys = settings.WEBHOOK_SECRET_KEYS
    return [unseal(sealed, keys=keys, purpose=_PURPOSE) for sealed in endpoint.sealed_secrets]


def reseal_secrets() -> Resealed:
    """Seal all secrets under the first key, after a new one was put there."""
    return reseal(Endpoint.objects.all(), keys=settings.WEBHOOK_SECRET_KEYS, purpose=_PURPOSE)


def disable(endpoint_id: int, *, by: Endpoint.DisabledBy, now: datetime) -> bool:
    """Send nothing more to the endpoint; return whether it was this call that disabled it. What waits stays."""
    enabled = Endpoint.objects.filter(pk=endpoint_id).enabled()
    return bool(enabled.update(disabled_at=now, disabled_by=by))


def enable(endpoint: Endpoint, *, now: datetime) -> bool:
    """
    Resume sending, with the waiting messages first. Return whether it was disabled.

    Events from the disabled time are not sent, except the settlements of calls that it has a message of.
    """
    disabled = Endpoint.objects.filter(pk=endpoint.pk, disabled_at__isnull=False)
    return bool(disabled.update(disabled_at=None, disabled_by="", failing_since=None, enabled_at=now))


def send_test(endpoint: Endpoint, *, now: datetime) -> Message:
    """
    Write a message that says nothing, to try the receiver with.

    Raises:
        EndpointDisabled: nothing is sent there.
    """
    if not endpoint.is_enabled:
        raise EndpointDisabled("Enable it first.")
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
    """Return a new secret, and how it is stored."""
    require_configured()
    secret = _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
    return secret, seal(secret, keys=settings.WEBHOOK_SECRET_KEYS, purpose=_PURPOSE)
