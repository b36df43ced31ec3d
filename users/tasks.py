"""Doors for Celery: what beat runs for sign-in."""

from typing import Any

from celery import shared_task
from django.utils.timezone import now

from users.services import access, sign_in


@shared_task(name="users.purge")
def purge(**_: Any) -> None:
    """Delete challenges and sessions that ended long ago."""
    sign_in.purge_sign_ins(now=now())


@shared_task(name="users.refresh_issuer_keys")
def refresh_issuer_keys(**_: Any) -> None:
    """Fetch the external issuer's keys."""
    access.refresh_issuer_keys(now=now())
