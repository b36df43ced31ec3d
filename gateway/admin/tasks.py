"""Celery tasks of the admin kit: news by e-mail, for those who do not look at the admin all day."""

from smtplib import SMTPException
from typing import Any

from celery import shared_task
from django.conf import settings
from django.core.mail import send_mail
from django.urls import reverse

from gateway.admin import approval_kinds
from gateway.admin.models import ApprovalRequest

_TRIES, _PAUSE_SECONDS = 5, 60


@shared_task(
    name="gateway_admin.announce_request",
    autoretry_for=(OSError, SMTPException),
    max_retries=_TRIES,
    default_retry_delay=_PAUSE_SECONDS,
)
def announce_request(*, request_id: int, **_: Any) -> None:
    """
    Tell `APPROVAL_NOTICE_TO` that a request waits, unless it was decided meanwhile.

    The message names no user and no reason: it leaves the service, and the page has them.
    """
    approval = ApprovalRequest.objects.waiting().filter(pk=request_id).first()
    if approval is None or not settings.APPROVAL_NOTICE_TO:
        return
    kind = approval_kinds.kind_of(approval)
    decides = approval_kinds.others_who_decide(kind, approval.requested_roles)
    page = reverse("admin:gateway_admin_approvalrequest_change", args=[approval.pk])
    send_mail(
        subject=f"{kind.title}: waits for {decides}",
        message=f"Request {approval.pk} waits for {decides} until {approval.expires_at:%Y-%m-%d %H:%M} UTC.\n\n"
        f"{settings.PUBLIC_URL}{page}\n",
        from_email=None,
        recipient_list=settings.APPROVAL_NOTICE_TO,
    )
