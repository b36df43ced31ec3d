"""Celery tasks of sign-in, run by beat."""

from typing import Any

from celery import shared_task

from gateway.common.clock import now
from users.services import deletion, external_issuer, profile_cards, sign_in


@shared_task(name="users.purge")
def purge(**_: Any) -> None:
    sign_in.purge(now=now())


@shared_task(name="users.refresh_issuer_keys")
def refresh_issuer_keys(**_: Any) -> None:
    external_issuer.refresh_keys(now=now())


@shared_task(name="users.end_billing_of_deleted")
def end_billing_of_deleted(**_: Any) -> None:
    """Cancel the subscriptions and delete the customers of accounts that are being deleted."""
    deletion.end_billing(now=now())


@shared_task(name="users.refresh_profile_card")
def refresh_profile_card(*, user_id: int, **_: Any) -> None:
    """Read the profile's name and picture."""
    profile_cards.refresh(user_id=user_id, now=now())
