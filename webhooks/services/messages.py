"""Messages that are over: sent again when staff want it, and deleted when they are old."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from users.models import User
from webhooks.errors import EndpointDisabled
from webhooks.models import Endpoint, Message, Subject


def resend(message: Message, *, now: datetime) -> bool:
    """
    Have a message delivered again, with the event's id that it had; False where it waits to be delivered anyway.

    Raises:
        EndpointDisabled: nothing is sent to its endpoint.
    """
    return bool(_resend(message.endpoint, Q(pk=message.pk), now))


def resend_given_up(endpoint: Endpoint, *, since: datetime, now: datetime) -> int:
    """
    Have all messages that were given up since then delivered again; return how many.

    Raises:
        EndpointDisabled: nothing is sent to the endpoint.
    """
    return _resend(endpoint, Q(status=Message.Status.GIVEN_UP, finished_at__gte=since), now)


def _resend(endpoint: Endpoint, which: Q, now: datetime) -> int:
    if not Endpoint.objects.enabled().filter(pk=endpoint.pk).exists():
        raise EndpointDisabled("Enable the endpoint first.")
    over = Message.objects.filter(which, endpoint=endpoint).exclude(status=Message.Status.WAITING)
    return over.update(status=Message.Status.WAITING, attempts=0, next_attempt_at=now, finished_at=None)


def forget(user: User) -> None:
    """Delete all messages about somebody who leaves, and what would lead to further ones."""
    Message.objects.filter(user=user).delete()
    Subject.objects.filter(user=user).delete()


def purge(*, now: datetime) -> int:
    """Delete what was delivered or given up long ago, and what waits for an endpoint disabled as long."""
    limit = now - timedelta(days=settings.WEBHOOK_KEPT_DAYS)
    abandoned = Q(status=Message.Status.WAITING, created_at__lt=limit, endpoint__disabled_at__lt=limit)
    _, deleted = Message.objects.filter(Q(finished_at__lt=limit) | abandoned).delete()
    Subject.objects.filter(kind=Subject.Kind.CALL, changed_at__lt=limit).delete()
    return deleted.get(Message._meta.label, 0)
