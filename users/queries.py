"""Reads of users, sessions, challenges and keys."""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth import get_user_model

from gateway.chain.config import get_chain, home
from gateway.common import db
from gateway.common.fields import checksum
from gateway.common.statements import Statements, fill
from users.errors import AccountBanned, AccountInactive, SessionEnded
from users.models import (
    Ban,
    FoundCode,
    IssuerKeySet,
    RefreshToken,
    SignInChallenge,
    SignInSession,
    TrustedImplementation,
    User,
)

_MAX_CHALLENGES_SEARCHED = 4
CLOSED = "Support has closed this account."
BANNED = "Support has banned this account."


class _Sql(
    Statements,
    file=__file__,
    session_columns=db.columns(SignInSession, "session"),
    user_columns=db.columns(User, "owner"),
):
    session_with_user: str
    trusted_codes: str
    session_state: str
    late_deletions: str


def owner_of(address: str) -> User | None:
    """Return the user of a profile address in any casing, or None."""
    try:
        profile_address = checksum(address)
    except ValueError:
        return None
    return next(iter(get_user_model().objects.filter(profile_address=profile_address)), None)


def staff_named(username: str) -> User | None:
    """Return the active member of staff with that username, or None."""
    return next(iter(get_user_model().objects.filter(username=username, is_staff=True, is_active=True)), None)


def session_with_user(*, session_id: uuid.UUID) -> SignInSession | None:
    """Return the session joined with its user in one query, ended or not."""
    row = db.first_row(_Sql.session_with_user, {"session": session_id})
    if row is None:
        return None
    session = db.instance(SignInSession, row[:_OF_SESSION])
    session.user = db.instance(User, row[_OF_SESSION:])
    return session


_OF_SESSION = len(SignInSession._meta.concrete_fields)


def session_state(*, user: str, session: str, now: str) -> str:
    """
    Return an SQL expression for the session state of a verified token, to embed in statements that read more.

    The arguments are SQL expressions: the id of the token's user, that of its session (NULL for a token
    of an external issuer), and the current time. The value is `active`; `banned`; `inactive` if the account is closed;
    `ended`; or NULL if the user does not exist. Pass it to `require_active_state`.
    """
    return fill(_Sql.session_state, {"user": user, "session": session, "now": now})


# `session_state` for the parameters `user`, `session` and `now`.
SESSION_STATE = session_state(user="%(user)s", session="CAST(%(session)s AS uuid)", now="%(now)s")


def require_active_state(state: str | None) -> None:
    """
    Refuse a token whose `session_state` is not active.

    Raises:
        SessionEnded, AccountInactive, AccountBanned: the session or the account has ended.
    """
    if state == "banned":
        raise AccountBanned(BANNED)
    if state == "inactive":
        raise AccountInactive(CLOSED)
    if state != "active":
        raise SessionEnded("Sign in again.")


def require_not_banned(user: User) -> None:
    """
    Refuse a banned person; costs a query only for inactive accounts.

    Raises:
        AccountBanned: support has banned the account.
    """
    if not user.is_active and Ban.objects.open().filter(user=user).exists():
        raise AccountBanned(BANNED)


def state_of_session(*, user_id: int, session_id: uuid.UUID | None, now: datetime) -> str | None:
    """Return the `session_state` of one token."""
    params = {"user": user_id, "session": session_id, "now": now}
    row = db.first_row(SESSION_STATE, params)
    return row[0] if row else None


def sessions_of(*, user_id: int, now: datetime) -> list[SignInSession]:
    """Return the user's active sessions, most recently used first."""
    return list(SignInSession.objects.filter(user_id=user_id).active(now=now).order_by("-refreshed_at", "id"))


# For the parameters `chain` and `home`: the ids of the chain and of the home chain.
TRUSTED_CODES = _Sql.trusted_codes


def trusted_codes() -> frozenset[str]:
    """Return the codes of `TRUSTED_CODES` for the current chain."""
    return frozenset(db.only_row(_Sql.trusted_codes, {"chain": get_chain().id, "home": home().id})[0])


def are_trusted(codes: frozenset[str], *, profile_code: str, key_manager_code: str) -> bool:
    """Return whether `TRUSTED_CODES` contains the codes of both contracts, given by name."""
    kinds = TrustedImplementation.Kind
    return codes >= {f"{kinds.PROFILE} {profile_code}", f"{kinds.KEY_MANAGER} {key_manager_code}"}


def addresses_to_compare(names: Sequence[str]) -> list[str]:
    """Return those of the code names that are trusted addresses, and whose code here or at home was never read."""
    known = FoundCode.objects.filter(address__in=names, chain_id__in=[get_chain().id, home().id])
    counts = Counter(known.values_list("address", flat=True))
    trusted = TrustedImplementation.objects.filter(is_active=True, address__in=names)
    # Both chains, or one if it is home.
    return sorted(
        address
        for address in set(trusted.values_list("address", flat=True))
        if address is not None and counts[address] < len({get_chain().id, home().id})
    )


def refresh_token(*, token_hash: str) -> RefreshToken | None:
    """Return the refresh token joined with its session and user in one query, ended or not."""
    return RefreshToken.objects.select_related("session__user").filter(token_hash=token_hash).first()


def other_open_challenges(*, challenge: SignInChallenge, client: str, now: datetime) -> list[SignInChallenge]:
    """Return the newest other open challenges of the same client, one of which may be the signed one."""
    challenges = SignInChallenge.objects.open(now=now).filter(client=client).exclude(pk=challenge.pk)
    return list(challenges.order_by("-issued_at")[:_MAX_CHALLENGES_SEARCHED])


def issuer_keys(*, url: str) -> list[dict[str, object]]:
    """Return the external issuer's keys as last fetched; empty before the first fetch."""
    key_set = IssuerKeySet.objects.filter(url=url).first()
    return key_set.keys if key_set else []


@dataclass(frozen=True, slots=True)
class LateDeletions:
    """Ages in seconds of the oldest deletion with unfinished billing, and of the oldest one not erased; 0 if none."""

    billing_age: float
    erasure_age: float


def late_deletions() -> LateDeletions:
    """Return the age of the oldest unfinished deletion in each state, in one statement."""
    billing, erasure = db.only_row(_Sql.late_deletions, {})
    return LateDeletions(float(billing), float(erasure))
