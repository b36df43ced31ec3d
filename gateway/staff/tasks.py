"""Celery task that announces approval requests by e-mail."""

from smtplib import SMTPException
from typing import Any

from celery import shared_task
from django.conf import settings
from django.core.mail import send_mail
from django.urls import reverse

from gateway.staff import approval_kinds
from gateway.staff.models import ApprovalRequest

_TRIES, _PAUSE_SECONDS = 5, 60


@shared_task(
    name="gateway_admin.announce_request",
    autoretry_for=(OSError, SMTPException),
    max_retries=_TRIES,
    default_retry_delay=_PAUSE_SECONDS,
)
def announce_request(*, request_id: int, **_: Any) -> None:
    """
    Notify `APPROVAL_NOTICE_TO` of a waiting request by e-mail, unless it has been decided in the meantime.

    E-mail is not confidential, so the message names neither user nor reason; the request's page shows both.
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
