"""
Bans: support closes the account of a person who abuses the service, and another member of support opens it again.

A ban makes the account inactive, which every door checks: tokens, refreshing, sign-in, calls without a token, and
sponsors' API keys. The open `Ban` tells why. Credits stay. What else must stop, such as automatic top-up, apps register
with `at_ban`.
"""

from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from users.errors import BanRefused
from users.models import Ban, SignInSession, User
from users.rules import refusal_of_ban, refusal_of_lifting
from users.services import sessions

_AtBan = Callable[[User, datetime], object]
_at_ban: dict[str, _AtBan] = {}


def at_ban(app: str, end: _AtBan) -> None:
    """Register what an app does in the transaction that bans a person."""
    _at_ban[app] = end


@transaction.atomic
def ban(*, user: User, actor: User, reason: str, now: datetime) -> Ban:
    """
    Ban the person from now on, and end all sessions.

    Raises:
        BanRefused: the account belongs to staff, or is not active.
    """
    locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if refusal := refusal_of_ban(is_staff=locked.is_staff, is_active=locked.is_active):
        raise BanRefused(refusal)
    User.objects.filter(pk=user.pk).update(is_active=False)
    sessions.end_all(user_id=user.pk, reason=SignInSession.Reason.STAFF, now=now)
    for end in _at_ban.values():
        end(locked, now)
    return Ban.objects.create(user=locked, reason=reason, banned_by=actor, banned_at=now)


@transaction.atomic
def lift(*, user: User, actor: User, now: datetime) -> None:
    """
    Open a banned account again; its owner signs in anew.

    Raises:
        BanRefused: the account is not banned, or `actor` has banned it.
    """
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    row = Ban.objects.open().filter(user=user).first()
    if refusal := why_not_lift(row, actor):
        raise BanRefused(refusal)
    Ban.objects.open().filter(user=user).update(lifted_at=now, lifted_by=actor)
    User.objects.filter(pk=user.pk).update(is_active=True)


def why_not_lift(row: Ban | None, actor: User) -> str:
    """Return why this member of staff cannot lift the ban; empty if they can."""
    return refusal_of_lifting(banned_by=row.banned_by_id if row else None, actor=actor.pk)
