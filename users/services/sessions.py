"""Sessions: opened by a sign-in, and ended for all their tokens at once."""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from users import queries
from users.models import RefreshToken, SignInSession
from users.services import accounts
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
        user = accounts.user_of_profile(profile_address=profile_address)
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
