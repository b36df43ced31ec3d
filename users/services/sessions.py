"""
Sessions: opened by a sign-in, and ended for all their tokens at once.

The exchange of a refresh token for the next one of its session.

A token that comes back after its grace has two holders, and nobody can tell which
one is the thief; so the whole session ends.
"""

import logging
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from users import queries
from users.errors import (
    AccountInactive,
    ControllerRevoked,
    RefreshTokenReused,
    RefreshTokenUnknown,
    SessionEnded,
)
from users.models import RefreshToken, SignInSession
from users.services import controllers
from users.services.access import user_of_profile
from users.tokens import access, refresh

_KEPT_AFTER_END = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class TokenPair:
    """What a client receives: a short-lived access token, and the token for the next pair."""

    access: str
    refresh: str
    expires_in_seconds: int
    profile_address: str


def start(*, profile_address: str, controller: str, now: datetime) -> TokenPair:
    """
    Open a session for a profile whose controller has proved itself.

    Raises:
        AccountInactive: support has closed the account.
    """
    token = refresh.new_token()
    with transaction.atomic(durable=True):
        user = user_of_profile(profile_address=profile_address)
        session = SignInSession.objects.create(
            user=user,
            controller_address=controller,
            created_at=now,
            refreshed_at=now,
            expires_at=now + settings.AUTH_REFRESH_LIFETIME,
        )
        RefreshToken.objects.create(session=session, token_hash=refresh.hash_of(token), created_at=now)
    return pair_of(session=session, profile_address=profile_address, token=token, now=now)


def pair_of(*, session: SignInSession, profile_address: str, token: str, now: datetime) -> TokenPair:
    """Return the refresh token together with a fresh access token of the same session."""
    signed = access.issue(
        user_id=session.user_id,
        profile_address=profile_address,
        session_id=session.pk,
        controller_address=session.controller_address,
        now=now,
    )
    return TokenPair(signed, token, int(settings.AUTH_ACCESS_LIFETIME.total_seconds()), profile_address)


def end(*, session_id: uuid.UUID, reason: SignInSession.Reason, now: datetime) -> bool:
    """End a session for all its tokens at once; return whether it was this call that ended it."""
    living = SignInSession.objects.filter(pk=session_id, revoked_at=None)
    return bool(living.update(revoked_at=now, revoked_reason=reason))


def end_all(*, user_id: int, reason: SignInSession.Reason, now: datetime) -> int:
    """End every living session of the user, and return how many this call ended."""
    living = SignInSession.objects.filter(user_id=user_id).living(now=now)
    return living.update(revoked_at=now, revoked_reason=reason)


def sign_out(*, user_id: int, session_id: uuid.UUID | None, token: str | None, now: datetime) -> None:
    """
    End the session of the access token and, where the same user's refresh token is sent, that one's too.

    A refresh token that is unknown or somebody else's changes nothing.
    """
    if session_id is not None:
        end(session_id=session_id, reason=SignInSession.Reason.SIGNED_OUT, now=now)
    found = queries.refresh_token(token_hash=refresh.hash_of(token)) if token else None
    if found is not None and found.session.user_id == user_id:
        end(session_id=found.session_id, reason=SignInSession.Reason.SIGNED_OUT, now=now)


def purge(*, now: datetime) -> int:
    """Delete sessions that ended long ago, with their tokens, and return how many."""
    limit = now - _KEPT_AFTER_END
    ended = SignInSession.objects.filter(Q(expires_at__lt=limit) | Q(revoked_at__lt=limit))
    _, per_model = ended.delete()
    return per_model.get(SignInSession._meta.label, 0)


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
        end(session_id=session.pk, reason=SignInSession.Reason.CONTROLLER_REVOKED, now=now)
        security_log.warning("controller may not sign any more, session %s ended", session.pk)
        raise ControllerRevoked("The controller that signed in may not sign for the profile any more.")
    # 3. Under the lock: one child. Ending the session waits until after it, since a raise would undo the end.
    child = refresh.child_of(token)
    with transaction.atomic(durable=True):
        rotated = _rotate(session.pk, found.pk, refresh.hash_of(child), now)
    if not rotated:
        _end_reused(session.pk, now)
    return pair_of(session=session, profile_address=profile_address, token=child, now=now)


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
    end(session_id=session_id, reason=SignInSession.Reason.TOKEN_REUSED, now=now)
    security_log.warning("refresh token used twice, session %s ended", session_id)
    raise RefreshTokenReused("The token was exchanged before. Sign in again.")


def _require_living(session: SignInSession, now: datetime) -> None:
    if not session.is_living(now=now):
        raise SessionEnded("Sign in again.")
    if not session.user.is_active:
        raise AccountInactive("Support has closed this account.")
