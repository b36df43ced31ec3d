"""Reads the rows about a relay call before a node is queried: user, session, earlier calls, limits and quote."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings

from credits.queries import PERIOD_COLUMNS, PaidPeriod, period_from
from gateway.chain.config import get_chain, home
from gateway.common import db
from gateway.common.statements import Statements
from gateway.staff.pauses import is_paused_sql
from relay.errors import ProfileNotRegistered
from relay.models import SQL, RelayTransaction
from rewards.queries import badge_debt
from users.models import User
from users.queries import (
    SESSION_STATE,
    TRUSTED_CODES,
    require_active_state,
    require_not_banned,
    session_state,
)

# The name under which staff pause the whole relay.
RELAY = "relay"


class _Sql(
    Statements,
    file=__file__,
    shared=SQL,
    callers_session_state=session_state(user="call.user_id", session="call.session_id", now="call.now"),
    is_paused=is_paused_sql(RELAY),
    badge_debt=badge_debt(user="call.user_id", now="call.now"),
    trusted_codes=TRUSTED_CODES,
    session_state=SESSION_STATE,
    period_columns=PERIOD_COLUMNS,
):
    call_rows: str
    controller_of_session: str
    quota_rows: str


def registered_owner(profile_address: str) -> User:
    """
    Return the active user of a profile, given in EIP-55 text.

    Raises:
        AccountBanned: support has banned the account.
        ProfileNotRegistered: the profile has never signed in here, or support has closed its account.
    """
    user = User.objects.filter(profile_address=profile_address).first()
    if user is not None:
        require_not_banned(user)
    if user is None or not user.is_active:
        raise ProfileNotRegistered(
            f"{profile_address} has never signed in here. Sign in with the profile once.",
            profile=profile_address,
        )
    return user


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a relay call: its LSP-25 digest and the controller that signed it."""

    digest: str
    controller: str


class QuotedTerms(NamedTuple):
    """The terms of one of the caller's quotes."""

    digest: str
    credits: int
    gas_limit: int
    max_fee_per_gas_wei: int
    expires_at: datetime
    is_used: bool
    # The version of a sponsor's policy that pays; None if the user does.
    sponsor_version_id: int | None = None
    max_extra_fee_wei: int = 0


class CallRows(NamedTuple):
    """The stored data that decides about a relay call, read before any node is queried."""

    # The state of the caller's session; see `users.queries.session_state`.
    session_state: str | None
    # The hash of the user's call of this identity that is in progress or executed, if any.
    transaction_hash: str | None
    # The next generation of this identity; 0 for the first call.
    generation: int
    # How many generations of this identity have failed on chain. A failure on chain makes the signature public.
    failures: int
    # Whether staff have paused the whole relay.
    is_paused: bool
    # When the oldest of the user's calls without effect ended, if they reach the hourly or daily limit.
    hourly_limit_since: datetime | None
    daily_limit_since: datetime | None
    # The credits that the user's badges allow to owe; `credits_debt_limit` may lower the limit when a hold needs debt.
    badge_debt: int
    # The codes that are trusted on this chain, as `users.queries.TRUSTED_CODES` names them.
    trusted_codes: frozenset[str]
    # Whether the user's newest relay call, which was verified, used the same key manager.
    is_pair_known: bool
    # The quote submitted with the call, if the user has a quote with this id.
    quote: QuotedTerms | None
    # The tip that the nodes require, in wei per gas; 0 if they take ours.
    least_tip_wei: int
    # The wei of a credit for this call: that of its quote, else the chain's price.
    credit_wei: int


class CallKey(NamedTuple):
    """A relay call's identity and key manager, with the user and session that submit it."""

    identity: Identity
    key_manager: str
    user_id: int
    session_id: UUID | None
    now: datetime
    quote_id: UUID | None = None


def rows_of_calls(keys: Sequence[CallKey]) -> list[CallRows]:
    """Return the rows of each call, read in one statement."""
    calls = [
        {
            "place": place,
            "user_id": key.user_id,
            "session_id": key.session_id and str(key.session_id),
            "digest": key.identity.digest,
            "controller": key.identity.controller,
            "key_manager": key.key_manager,
            "quote": key.quote_id and str(key.quote_id),
            "now": key.now.isoformat(),
        }
        for place, key in enumerate(keys)
    ]
    params = {
        "calls": json.dumps(calls),
        "chain": get_chain().id,
        "home": home().id,
        "first_credit_wei": get_chain().first_credit_wei,
        "per_hour": settings.RELAY_CANCELLED_CALLS_PER_HOUR,
        "per_day": settings.RELAY_CANCELLED_CALLS_PER_DAY,
    }
    return [_call_rows(row) for row in db.all_rows(_Sql.call_rows, params)]


def _call_rows(row: tuple[Any, ...]) -> CallRows:
    (
        *columns,
        codes,
        is_pair_known,
        digest,
        quoted,
        gas_limit,
        max_fee,
        expires_at,
        is_used,
        version_id,
        max_extra_fee,
        tip,
        credit_wei,
    ) = row
    quote = digest and QuotedTerms(
        digest, quoted, gas_limit, int(max_fee), expires_at, is_used, version_id, int(max_extra_fee)
    )
    return CallRows._make([*columns, frozenset(codes), bool(is_pair_known), quote, int(tip), int(credit_wei)])


def active_transaction(*, user_id: int, identity: Identity) -> RelayTransaction | None:
    """Return the user's relay transaction of this identity that is in progress or executed, if any."""
    return (
        RelayTransaction.objects.active()
        .filter(
            chain_id=get_chain().id,
            user_id=user_id,
            digest=identity.digest,
            controller_address=identity.controller,
        )
        .first()
    )


def controller_of_session(*, user_id: int, session_id: UUID | None, now: datetime) -> str | None:
    """
    Return the controller that signed in; None for a token of an external issuer.

    Raises:
        SessionEnded, AccountInactive: the session or the account has ended.
    """
    params = {"user": user_id, "session": session_id, "now": now}
    state, controller = db.only_row(_Sql.controller_of_session, params)
    require_active_state(state)
    return None if controller is None else str(controller)


def next_relay_nonce(*, key_manager: str, controller: str, chain_nonce: int) -> int:
    """Return the relay nonce after the calls in progress; `chain_nonce` is the nonce that the chain expects next."""
    taken = set(
        RelayTransaction.objects.active()
        .of_channel(
            chain_id=get_chain().id,
            key_manager=key_manager,
            controller=controller,
            channel=chain_nonce >> 128,
        )
        .filter(relay_nonce__gte=chain_nonce, terminal_status="")
        .values_list("relay_nonce", flat=True)
    )
    return next(nonce for nonce in itertools.count(chain_nonce) if nonce not in taken)


class QuotaRows(NamedTuple):
    """Available credits and the paid period; 0 and None for a user without an account or a period."""

    available: int
    period: PaidPeriod | None


def rows_of_quota(*, user_id: int, session_id: UUID | None, now: datetime) -> QuotaRows:
    """
    Return a user's available credits and paid period, read in one statement.

    Raises:
        SessionEnded, AccountInactive: the session or the account has ended.
    """
    params = {"user": user_id, "session": session_id, "now": now}
    state, available, *period = db.only_row(_Sql.quota_rows, params)
    require_active_state(state)
    return QuotaRows(available, period_from(period))
