"""
E-mails to account holders: stored once for each event, and sent outside any transaction.

A notice is claimed in one transaction and its result recorded in another, with only the call to the mail server in
between, so delivery is at least once. One run at a time sends, so that a mail server that hangs keeps one worker.
"""

import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from smtplib import SMTPException
from typing import NamedTuple

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F
from django.template.loader import render_to_string
from django.utils import translation

from credits.services import expiry
from credits.services.expiry import ExpiringCredits
from gateway.common.leases import try_lease
from sponsors.models import Member, Verifier
from webhooks.models import MessageStatus, Notice, NoticeAddress
from webhooks.payloads import Event
from webhooks.services.addresses import confirm_token, stop_token

logger = logging.getLogger(__name__)
# Longer than it takes to send a notice.
_CLAIM_TIME = timedelta(minutes=15)
_RUN_SECONDS = 30.0
# The backoff before each further attempt; after the last one, the notice is given up.
_PAUSES = (timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1), timedelta(hours=6))
_KEPT, _WEEK = timedelta(days=30), timedelta(days=7)
_NO_ADDRESS = "The address is not confirmed, or has changed."

# Where a notice sends its reader, if not to the account page.
_PLACES = {
    Notice.Kind.SPONSOR_SERVER.value: "sponsor#calls",
    Notice.Kind.SPONSOR_PROFILES_LOW.value: "sponsor#policies",
}


class _Mail(NamedTuple):
    subject: str
    body: str
    headers: dict[str, str]


def write(events: Sequence[Event]) -> None:
    """Store a notice of each event for those of its users who have confirmed an address."""
    rows = [
        Notice(user_id=event.user_id, kind=event.type.value, key=event.key, data=event.data)
        for event in _of_confirmed(events)
    ]
    Notice.objects.bulk_create(rows, ignore_conflicts=True)


def write_expiries(events: Sequence[Event]) -> None:
    """
    Store one notice for each user and week (Monday to Sunday, UTC) in which announced credits expire.

    It is sent at the beginning of the week before, with the sum of the credits that are left then of all these lots.
    """
    rows = [
        Notice(
            user_id=event.user_id,
            kind=Notice.Kind.EXPIRING,
            key=f"expiring:{event.user_id}:{week:%Y-%m-%d}",
            data={"until": (week + _WEEK).isoformat()},
            next_attempt_at=week - _WEEK,
        )
        for event in _of_confirmed(events)
        for week in [_week_of(datetime.fromtimestamp(event.data["expiresAt"], UTC))]
    ]
    Notice.objects.bulk_create(rows, ignore_conflicts=True)


def write_outages(servers: Sequence[Verifier]) -> None:
    """Store one notice of each outage of a sponsor's server for those of its owners who have confirmed an address."""
    rows = [
        Notice(
            user_id=user_id,
            kind=Notice.Kind.SPONSOR_SERVER,
            key=f"sponsor-server:{server.pk}:{user_id}:{server.announced_at:%Y%m%d%H%M%S%f}",
            data={"sponsor": server.sponsor.slug, "url": server.url, "fault": server.fault},
        )
        for server in servers
        for user_id in NoticeAddress.objects.filter(
            confirmed_at__isnull=False,
            user__memberships__sponsor=server.sponsor,
            user__memberships__role=Member.Role.OWNER,
        ).values_list("user_id", flat=True)
    ]
    Notice.objects.bulk_create(rows, ignore_conflicts=True)


def _week_of(moment: datetime) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday())


def _of_confirmed(events: Sequence[Event]) -> list[Event]:
    """Return the events of users who have confirmed an address."""
    confirmed = NoticeAddress.objects.filter(
        user__in={event.user_id for event in events}, confirmed_at__isnull=False
    )
    users = set(confirmed.values_list("user_id", flat=True))
    return [event for event in events if event.user_id in users]


def send_due(*, now: datetime) -> int:
    """Send notices that are due, for about half a minute; return how many were claimed."""
    with try_lease("webhooks.notices") as acquired:
        return _send_due(now) if acquired else 0


def _send_due(now: datetime) -> int:
    ends_at, claimed = time.monotonic() + _RUN_SECONDS, 0
    while time.monotonic() < ends_at and (notice := _claim(now)):
        claimed += 1
        try:
            obstacle = _send(notice, now)
        except (OSError, SMTPException) as failure:
            _failed(notice, failure, now)
            continue
        status = MessageStatus.GIVEN_UP if obstacle else MessageStatus.DELIVERED
        _finish(notice, status, now, error=obstacle)
    return claimed


@transaction.atomic(durable=True)
def _claim(now: datetime) -> Notice | None:
    due = Notice.objects.filter(status=MessageStatus.WAITING, next_attempt_at__lte=now)
    oldest = due.order_by("next_attempt_at", "pk").select_for_update(skip_locked=True, no_key=True).first()
    if oldest:
        _update(oldest, attempts=F("attempts") + 1, next_attempt_at=now + _CLAIM_TIME)
    return oldest


def _send(notice: Notice, now: datetime) -> str:
    """Send the notice; return why it must not be sent, for example because the address was removed or changed."""
    address = NoticeAddress.objects.select_related("user").filter(user=notice.user_id).first()
    is_question = notice.kind == Notice.Kind.CONFIRM
    if address is None or (address.confirmed_at is None) != is_question:
        return _NO_ADDRESS
    if is_question and notice.data.get("email") != address.email:
        return _NO_ADDRESS
    expiring = _expiring(notice, address, now)
    if notice.kind == Notice.Kind.EXPIRING and not expiring:
        return "The credits have been used."
    mail = _mail(notice, address, expiring)
    EmailMessage(mail.subject, mail.body, None, [address.email], headers=mail.headers).send()
    return ""


def _expiring(notice: Notice, address: NoticeAddress, now: datetime) -> list[ExpiringCredits]:
    """Return the credits that expire in the week of a notice; none for other notices."""
    if notice.kind != Notice.Kind.EXPIRING:
        return []
    until = datetime.fromisoformat(notice.data["until"])
    return [row for row in expiry.expiring_of(user=address.user, now=now) if row.expires_at < until]


def _mail(notice: Notice, address: NoticeAddress, expiring: list[ExpiringCredits]) -> _Mail:
    confirm = f"{settings.PUBLIC_URL}/notices/confirm/{confirm_token(address)}"
    stop = f"{settings.PUBLIC_URL}/notices/stop/{stop_token(address)}"
    context = {
        "kind": notice.kind,
        "data": notice.data,
        "expiring": sum(row.credits for row in expiring),
        "first": expiring[0].expires_at if expiring else None,
        "name": settings.BRAND_NAME,
        "account": f"{settings.PUBLIC_URL}/{_PLACES.get(notice.kind, 'account')}",
        "confirm": confirm,
        "stop": stop,
    }
    with translation.override(address.language):
        subject, _, body = render_to_string("portal/notice.txt", context).strip().partition("\n")
    headers = {"Auto-Submitted": "auto-generated"}
    if notice.kind != Notice.Kind.CONFIRM:
        headers |= {"List-Unsubscribe": f"<{stop}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    return _Mail(subject, body.strip() + "\n", headers)


def _failed(notice: Notice, failure: Exception, now: datetime) -> None:
    text = f"{type(failure).__name__}: {failure}"[:1000]
    logger.warning("notice %s could not be sent: %s", notice.pk, text)
    attempts = notice.attempts + 1
    if attempts > len(_PAUSES):
        _finish(notice, MessageStatus.GIVEN_UP, now, error=text)
    else:
        _update(notice, error=text, next_attempt_at=now + _PAUSES[attempts - 1])


def _finish(notice: Notice, status: MessageStatus, now: datetime, error: str = "") -> None:
    _update(notice, status=status, finished_at=now, error=error)


def _update(notice: Notice, **values: object) -> None:
    Notice.objects.filter(pk=notice.pk).update(**values)


def purge(*, now: datetime) -> None:
    Notice.objects.filter(finished_at__lt=now - _KEPT).delete()
