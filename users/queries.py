"""What sign-in reads. Nothing here writes."""

import uuid
from datetime import datetime

from users.models import IssuerKeySet, RefreshToken, SignInChallenge, SignInSession

_DIAGNOSED = 4


def session_with_user(*, session_id: uuid.UUID) -> SignInSession | None:
    """Return the session joined with its user in one query, whatever became of it."""
    return SignInSession.objects.select_related("user").filter(pk=session_id).first()


def refresh_token(*, token_hash: str) -> RefreshToken | None:
    """Return the refresh token joined with its session and user in one query, whatever became of them."""
    return RefreshToken.objects.select_related("session__user").filter(token_hash=token_hash).first()


def other_open_challenges(*, challenge: SignInChallenge, client: str, now: datetime) -> list[SignInChallenge]:
    """Return the newest few open challenges of the same caller: where a mixed-up nonce will be found."""
    found = SignInChallenge.objects.open(now=now).filter(client=client).exclude(pk=challenge.pk)
    return list(found.order_by("-issued_at")[:_DIAGNOSED])


def issuer_keys(*, url: str) -> list[dict[str, object]]:
    """Return the external issuer's keys as last fetched; empty before the first fetch."""
    found = IssuerKeySet.objects.filter(url=url).first()
    return found.keys if found else []
