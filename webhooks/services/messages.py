"""Finished messages: resent on request of staff, and deleted when they are old."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from users.models import User
from webhooks.errors import EndpointDisabled
from webhooks.models import CreditLevel, Endpoint, Message, Subject
from webhooks.services import addresses


def resend(message: Message, *, now: datetime) -> bool:
    """
    Schedule a message for another delivery with the same event id; False if it is waiting for delivery.

    Raises:
        EndpointDisabled: its endpoint is disabled.
    """
    return bool(_resend(message.endpoint, Q(pk=message.pk), now))


def resend_given_up(endpoint: Endpoint, *, since: datetime, now: datetime) -> int:
    """
    Schedule all messages that failed since `since` for another delivery; return how many.

    Raises:
        EndpointDisabled: the endpoint is disabled.
    """
    return _resend(endpoint, Q(status=Message.Status.GIVEN_UP, finished_at__gte=since), now)


def _resend(endpoint: Endpoint, which: Q, now: datetime) -> int:
    if not Endpoint.objects.enabled().filter(pk=endpoint.pk).exists():
        raise EndpointDisabled("Enable the endpoint first.")
    over = Message.objects.filter(which, endpoint=endpoint).exclude(status=Message.Status.WAITING)
    return over.update(status=Message.Status.WAITING, attempts=0, next_attempt_at=now, finished_at=None)


def forget(user: User) -> None:
    """Delete all messages about a deleted account, and the rows that would cause further ones."""
    Message.objects.filter(user=user).delete()
    Subject.objects.filter(user=user).delete()
    CreditLevel.objects.filter(user=user).delete()
    addresses.remove(user=user)


def purge(*, now: datetime) -> int:
    """Delete old delivered or failed messages, and those waiting for an endpoint that was disabled long ago."""
    limit = now - timedelta(days=settings.WEBHOOK_KEPT_DAYS)
    abandoned = Q(status=Message.Status.WAITING, created_at__lt=limit, endpoint__disabled_at__lt=limit)
    _, deleted = Message.objects.filter(Q(finished_at__lt=limit) | abandoned).delete()
    calls = (Subject.Kind.CALL, Subject.Kind.SPONSORED)
    Subject.objects.filter(kind__in=calls, changed_at__lt=limit).delete()
    return deleted.get(Message._meta.label, 0)
