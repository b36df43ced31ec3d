"""
The exchange of a refresh token for the next one of its session.

A token that comes back after its grace has two holders, and nobody can tell which
one is the thief; so the whole session ends.
"""

import logging
import uuid
from datetime import datetime
from typing import NoReturn

from django.conf import settings
from django.db import transaction

from users import queries
from users.errors import (
    AccountInactive,
    ControllerRevoked,
    RefreshTokenReused,
    RefreshTokenUnknown,
    SessionEnded,
)
from users.models import RefreshToken, SignInSession
from users.services import controllers, sessions
from users.services.sessions import TokenPair
from users.tokens import refresh

security_log = logging.getLogger("users.security")


def carry_on(*, token: str, now: datetime) -> TokenPair:
    """
    Exchange a refresh token for the next pair of its session.

    Within `AUTH_REFRESH_GRACE` a repeat gets the very same next refresh token.

    Raises:
        RefreshTokenUnknown, SessionEnded, AccountInactive: the token is worth nothing any more.
        RefreshTokenReused: it was exchanged before; the session has ended.
        ControllerRevoked: the controller lost SIGN, or the profile its key manager; the session has ended.
        NodeUnavailable: that cannot be checked right now; the token stays good.
    """
    # 1. Without a lock: refuse what is refused anyway, before the node is troubled.
    found = queries.refresh_token(token_hash=refresh.hash_of(token))
    if found is None:
        raise RefreshTokenUnknown("Sign in again.")
    session, profile_address = found.session, str(found.session.user.profile_address)
    _require_living(session, now)
    if _comes_too_late(found, now):
        _end_reused(session.pk, now)
    # 2. Outside any transaction: does the controller still sign for the profile?
    if not controllers.may_sign(profile_address=profile_address, controller=session.controller_address):
        sessions.end(session_id=session.pk, reason=SignInSession.Reason.CONTROLLER_REVOKED, now=now)
        security_log.warning("controller may not sign any more, session %s ended", session.pk)
        raise ControllerRevoked("The controller that signed in may not sign for the profile any more.")
    # 3. Under the lock: one child. Ending the session waits until after it, since a raise would undo the end.
    child = refresh.child_of(token)
    with transaction.atomic(durable=True):
        rotated = _rotate(session.pk, found.pk, refresh.hash_of(child), now)
    if not rotated:
        _end_reused(session.pk, now)
    return sessions.pair_of(session=session, profile_address=profile_address, token=child, now=now)


def _rotate(session_id: uuid.UUID, token_id: int, child_hash: str, now: datetime) -> bool:
    """
    Give the token its one child, once; False where the token comes too late.

    Raises:
        SessionEnded: the session ended while the node was asked.
    """
    session = SignInSession.objects.select_related("user").select_for_update(of=("self",)).get(pk=session_id)
    _require_living(session, now)
    token = RefreshToken.objects.get(pk=token_id)
    if token.used_at is not None:
        return not _comes_too_late(token, now)
    RefreshToken.objects.filter(pk=token_id).update(used_at=now)
    RefreshToken.objects.create(session=session, parent=token, token_hash=child_hash, created_at=now)
    SignInSession.objects.filter(pk=session_id).update(refreshed_at=now)
    return True


def _comes_too_late(token: RefreshToken, now: datetime) -> bool:
    return token.used_at is not None and now - token.used_at > settings.AUTH_REFRESH_GRACE


def _end_reused(session_id: uuid.UUID, now: datetime) -> NoReturn:
    sessions.end(session_id=session_id, reason=SignInSession.Reason.TOKEN_REUSED, now=now)
    security_log.warning("refresh token used twice, session %s ended", session_id)
    raise RefreshTokenReused("The token was exchanged before. Sign in again.")


def _require_living(session: SignInSession, now: datetime) -> None:
    if not session.is_living(now=now):
        raise SessionEnded("Sign in again.")
    if not session.user.is_active:
        raise AccountInactive("Support has closed this account.")
