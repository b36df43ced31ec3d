"""
Sign-in sessions: opened by a sign-in, refreshed with one-time tokens, and ended together with all their tokens.

An exchange whose response was lost can be repeated once (`_may_exchange`). If a refresh token is used in any other way
again, two parties have it, one of them possibly an attacker, so the whole session ends.
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
from users.services import controllers, profile_cards
from users.services.profiles import user_of_profile
from users.tokens import AccessToken, TokenHolder, hash_of, new_refresh_token, next_refresh_token

security_log = logging.getLogger("users.security")
_KEPT_AFTER_END = timedelta(days=30)
# How long after a token's exchange the exchange may be repeated because its response was lost.
_REPEATABLE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class TokenPair:
    """A short-lived access token, and the refresh token for the next pair."""

    access: str
    refresh: str
    expires_in_seconds: int
    profile_address: str


def start(*, profile_address: str, controller: str, now: datetime, origin: str = "") -> TokenPair:
    """Open a session for a profile with a verified controller, for the wallet app at `origin`."""
    token = new_refresh_token()
    with transaction.atomic(durable=True):
        user = user_of_profile(profile_address=profile_address)
        session = SignInSession.objects.create(
            user=user,
            controller_address=controller,
            origin=origin,
            created_at=now,
            refreshed_at=now,
            expires_at=now + settings.AUTH_REFRESH_LIFETIME,
        )
        RefreshToken.objects.create(session=session, token_hash=hash_of(token), created_at=now)
        profile_cards.refresh_if_old(user=user, now=now)
    return _token_pair(session, token, now)


def _token_pair(session: SignInSession, token: str, now: datetime) -> TokenPair:
    access = AccessToken.for_session(session, now=now)
    return TokenPair(
        str(access), token, int(AccessToken.lifetime.total_seconds()), str(session.user.profile_address)
    )


def session_of(token: AccessToken, *, now: datetime) -> SignInSession:
    """
    Return the session that an access token belongs to, with its user.

    Costs one query, so that signing out takes effect at once and not when the token expires.

    Raises:
        SessionEnded, AccountInactive: the session or the account has ended.
    """
    session = queries.session_with_user(session_id=token.session_id)
    if session is None or session.user_id != token.user_id:
        raise SessionEnded("Sign in again.")
    _require_active(session, now)
    return session


def require_active(holder: TokenHolder, *, now: datetime) -> None:
    """
    Refuse a verified token whose session or account has ended; costs one query.

    For requests that fail before their own session check, because an ended session takes precedence over other errors.

    Raises:
        SessionEnded, AccountInactive: the session or the account has ended.
    """
    state = queries.state_of_session(user_id=holder.pk, session_id=holder.session_id, now=now)
    queries.require_active_state(state)


def end(*, session_id: uuid.UUID, reason: SignInSession.Reason, now: datetime) -> bool:
    """End a session with all its tokens; return whether this call ended it."""
    session = SignInSession.objects.filter(pk=session_id, revoked_at=None)
    return bool(session.update(revoked_at=now, revoked_reason=reason))


def end_revoked(*, session_id: uuid.UUID, now: datetime) -> None:
    """End a session whose controller may no longer sign."""
    end(session_id=session_id, reason=SignInSession.Reason.CONTROLLER_REVOKED, now=now)
    security_log.warning("the controller lost SIGN, session %s ended", session_id)


def end_own(*, user_id: int, session_id: uuid.UUID, now: datetime) -> bool:
    """End an active session of the user; return whether this call ended it."""
    session = SignInSession.objects.filter(pk=session_id, user_id=user_id).active(now=now)
    return bool(session.update(revoked_at=now, revoked_reason=SignInSession.Reason.SIGNED_OUT))


def end_all(*, user_id: int, reason: SignInSession.Reason, now: datetime) -> int:
    """End every active session of the user; return how many this call ended."""
    sessions = SignInSession.objects.filter(user_id=user_id).active(now=now)
    return sessions.update(revoked_at=now, revoked_reason=reason)


def sign_out(*, user_id: int, session_id: uuid.UUID | None, token: str | None, now: datetime) -> None:
    """
    End the session of the access token, and that of the refresh token `token`, if it is the same user's.

    A refresh token that is unknown or belongs to another user changes nothing.
    """
    if session_id is not None:
        end(session_id=session_id, reason=SignInSession.Reason.SIGNED_OUT, now=now)
    row = queries.refresh_token(token_hash=hash_of(token)) if token else None
    if row is not None and row.session.user_id == user_id:
        end(session_id=row.session_id, reason=SignInSession.Reason.SIGNED_OUT, now=now)


def purge(*, now: datetime) -> int:
    """Delete sessions that ended long ago, with their tokens; return how many."""
    limit = now - _KEPT_AFTER_END
    ended = SignInSession.objects.filter(Q(expires_at__lt=limit) | Q(revoked_at__lt=limit))
    _, per_model = ended.delete()
    return per_model.get(SignInSession._meta.label, 0)


def refresh(*, token: str, now: datetime) -> TokenPair:
    """
    Exchange a refresh token for the next pair of its session.

    Within `AUTH_REFRESH_GRACE`, repeats return the same next refresh token. Later, one more repeat does, within ten
    minutes and while that next token is unused, because the response may have been lost.

    Raises:
        RefreshTokenUnknown, SessionEnded, AccountInactive: the session or the account has ended.
        RefreshTokenReused: the token was exchanged too often or too long ago; the session has ended.
        ControllerRevoked: the controller lost SIGN, or the key manager changed; the session has ended.
        NodeUnavailable: the controller cannot be checked now; the token stays valid.
    """
    # 1. Without a lock and before any node read: refuse invalid tokens.
    row = queries.refresh_token(token_hash=hash_of(token))
    if row is None:
        raise RefreshTokenUnknown("Sign in again.")
    session, profile_address = row.session, str(row.session.user.profile_address)
    _require_active(session, now)
    if not _may_exchange(row, now):
        _end_reused(session.pk, now)
    # 2. Outside any transaction: check that the controller still holds SIGN.
    if not controllers.may_sign(profile_address=profile_address, controller=session.controller_address):
        end_revoked(session_id=session.pk, now=now)
        raise ControllerRevoked("The controller that signed in may no longer sign for the profile.")
    # 3. Under the lock: create the one child. A reused token ends the session outside this transaction, which the error
    # would roll back.
    child = next_refresh_token(token)
    with transaction.atomic(durable=True):
        rotated = _rotate(session.pk, row.pk, hash_of(child), now)
    if not rotated:
        _end_reused(session.pk, now)
    return _token_pair(session, child, now)


def _rotate(session_id: uuid.UUID, token_id: int, child_hash: str, now: datetime) -> bool:
    """
    Create the token's one child, or record that its exchange was repeated; return False if it may not be exchanged.

    Raises:
        SessionEnded: the session ended while the node was queried.
    """
    session = SignInSession.objects.select_related("user").select_for_update(of=("self",)).get(pk=session_id)
    _require_active(session, now)
    token = RefreshToken.objects.get(pk=token_id)
    if not _may_exchange(token, now):
        return False
    this_token = RefreshToken.objects.filter(pk=token_id)
    if token.used_at is None:
        this_token.update(used_at=now)
        RefreshToken.objects.create(session=session, parent=token, token_hash=child_hash, created_at=now)
        SignInSession.objects.filter(pk=session_id).update(refreshed_at=now)
    elif not _is_in_grace(token, now):
        this_token.update(repeated_at=now)
        security_log.info("the exchange of a refresh token of session %s was repeated", session_id)
    return True


def _may_exchange(token: RefreshToken, now: datetime) -> bool:
    """
    Return whether the token is new, or was exchanged moments ago, or its exchange may be repeated.

    The repeat is for a lost response: once, for ten minutes, while the token's child is unused. Clients that wait for
    each other repeat together, so the grace begins again with it.
    """
    if token.used_at is None or _is_in_grace(token, now):
        return True
    if token.repeated_at is not None or now - token.used_at > _REPEATABLE:
        return False
    return RefreshToken.objects.filter(parent=token, used_at=None).exists()


def _is_in_grace(token: RefreshToken, now: datetime) -> bool:
    """Return whether the token was exchanged, or its exchange repeated, so recently that requests may have crossed."""
    latest = token.repeated_at or token.used_at
    return latest is not None and now - latest <= settings.AUTH_REFRESH_GRACE


def _end_reused(session_id: uuid.UUID, now: datetime) -> NoReturn:
    end(session_id=session_id, reason=SignInSession.Reason.TOKEN_REUSED, now=now)
    security_log.warning("refresh token used twice, session %s ended", session_id)
    raise RefreshTokenReused("The token was already exchanged. Sign in again.")


def _require_active(session: SignInSession, now: datetime) -> None:
    # First, because a ban also ends the sessions.
    queries.require_not_banned(session.user)
    if not session.is_active(now=now):
        raise SessionEnded("Sign in again.")
    if not session.user.is_active:
        raise AccountInactive(queries.CLOSED)
