"""
Post entries: grants, reversals, and corrections by staff.

An entry is posted once per key. A repeated key returns the first entry and changes nothing; `KeyConflict` reports a
key that was used with another user, amount or source. The reason is not compared.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from credits.errors import KeyConflict
from credits.models import CreditAccount, CreditEntry, EntrySource
from credits.services.statements import Sql
from gateway.common import db
from gateway.common.errors import stated
from users.models import User

_REVERSALS = {EntrySource.PAYOUT_CLAWBACK, EntrySource.EARNING_REVERSAL}
# Only the closing of holds and `adjust` post these, because they also write other rows.
_NOT_GRANTED = {EntrySource.RELAY_TRANSACTION, EntrySource.STAFF_ADJUSTMENT}


def open_account(*, user_id: int) -> CreditAccount:
    """Return the user's account, and open an empty one if there is none; safe under concurrency."""
    db.all_rows(Sql.open_accounts, {"users": [user_id]})
    return CreditAccount.objects.get(user_id=user_id)


def lock_account(*, user: User) -> None:
    """Lock the user's account until the transaction ends; open it if necessary."""
    lock_accounts(user_ids=[user.pk])


def lock_accounts(*, user_ids: Collection[int]) -> None:
    """Lock the users' accounts until the transaction ends; open those that are missing."""
    own = CreditAccount.objects.select_for_update(no_key=True).filter(user_id__in=user_ids).order_by("pk")
    missing = set(user_ids) - set(own.values_list("user_id", flat=True))
    if missing:
        db.all_rows(Sql.open_accounts, {"users": sorted(missing)})
        list(own.values_list("pk"))


def grant(*, user: User, credits: int, source: str, key: str, reason: str = "") -> CreditEntry:
    """
    Grant a user credits.

    Raises:
        ValueError: `credits` is not positive, or the source cannot be granted.
    """
    if credits <= 0:
        raise ValueError("a grant must be a positive number of credits")
    if EntrySource(source) in _NOT_GRANTED:
        raise ValueError(f"{source} cannot be granted")
    return _post(user=user, credits=credits, source=source, key=key, actor=None, reason=reason)


def reverse(*, user: User, credits: int, source: str, key: str, reason: str = "") -> CreditEntry:
    """
    Take back credits; the balance may become negative.

    Raises:
        ValueError: `credits` is not positive, or the source is not a reversal.
    """
    if credits <= 0:
        raise ValueError("a reversal must be a positive number of credits")
    if EntrySource(source) not in _REVERSALS:
        raise ValueError(f"{source} is not a reversal")
    return _post(user=user, credits=-credits, source=source, key=key, actor=None, reason=reason)


class Posting(NamedTuple):
    """Credits to post for a user; negative credits are taken back."""

    user_id: int
    credits: int
    source: str
    key: str


def post_all(postings: Sequence[Posting]) -> dict[str, int]:
    """
    Post grants and reversals in order, in one statement, and return the id of each entry by its key.

    The caller has opened and locked the accounts, and knows that the keys are new: a repeated key fails the statement.

    Raises:
        ValueError: a source does not fit the sign of its credits, or the credits are zero.
    """
    for posting in postings:
        is_reversal = EntrySource(posting.source) in _REVERSALS
        fits = posting.source == EntrySource.RELAY_REVERSAL or is_reversal == (posting.credits < 0)
        if not posting.credits or posting.source in _NOT_GRANTED or not fits:
            raise ValueError(f"{posting.credits} credits cannot be posted as {posting.source}")
    params = {
        "users": [posting.user_id for posting in postings],
        "credits": [posting.credits for posting in postings],
        "sources": [str(posting.source) for posting in postings],
        "keys": [posting.key for posting in postings],
    }
    return {key: entry_id for entry_id, key in db.all_rows(Sql.post_entries, params)}


def adjust(*, user: User, credits: int, key: str, actor: User | None, reason: str) -> CreditEntry:
    """
    Correct a balance by a signed number of credits; it may become negative.

    `actor` is the member of staff, or None for a command without one.

    Raises:
        ReasonRequired: the reason is blank.
        ValueError: `credits` is zero.
    """
    if credits == 0:
        raise ValueError("an adjustment must be at least one credit")
    source, why = EntrySource.STAFF_ADJUSTMENT, stated(reason)
    return _post(user=user, credits=credits, source=source, key=key, actor=actor, reason=why)


def adjust_sponsor(
    *, sponsor_id: int, credits: int, key: str, actor: User | None, reason: str
) -> CreditEntry:
    """
    Correct the balance of a sponsor's account, as `adjust` does for a user.

    Raises:
        ReasonRequired: the reason is blank.
        ValueError: `credits` is zero.
    """
    if credits == 0:
        raise ValueError("an adjustment must be at least one credit")
    params = _params(sponsor_id, credits, EntrySource.STAFF_ADJUSTMENT, key, actor, stated(reason))
    return _post_to_sponsor(params)


def move_of_sponsor(*, sponsor_id: int, credits: int, source: str, key: str, reason: str) -> CreditEntry:
    """
    Grant credits to a sponsor's account, or take them back if negative; the balance may become negative.

    Raises:
        ValueError: `credits` is zero, or the source does not allow this direction.
    """
    is_reversal = EntrySource(source) in _REVERSALS
    if not credits or source in _NOT_GRANTED or (credits < 0 and not is_reversal):
        raise ValueError(f"{credits} credits cannot be posted as {source}")
    return _post_to_sponsor(_params(sponsor_id, credits, source, key, None, reason))


def _post_to_sponsor(params: Mapping[str, Any]) -> CreditEntry:
    posted = CreditEntry.objects.raw(Sql.post_to_sponsor, params)
    if (entry := next(iter(posted), None) or _repeat(params, "sponsor_id")) is None:
        raise CreditAccount.DoesNotExist(f"sponsor {params['owner']} has no account")
    return entry


def _params(
    owner: int, credits: int, source: str, key: str, actor: User | None, reason: str
) -> dict[str, Any]:
    return {
        "owner": owner,
        "credits": credits,
        "source": str(source),
        "key": key,
        "actor": actor.pk if actor else None,
        "reason": reason,
    }


def _post(*, user: User, credits: int, source: str, key: str, actor: User | None, reason: str) -> CreditEntry:
    params = _params(user.pk, credits, source, key, actor, reason)
    while (entry := _insert(params) or _repeat(params, "user_id")) is None:
        open_account(user_id=user.pk)  # Only the account can be missing.
    return entry


def _insert(params: Mapping[str, Any]) -> CreditEntry | None:
    return next(iter(CreditEntry.objects.raw(Sql.post_entry, params)), None)


def _repeat(params: Mapping[str, Any], owner: str) -> CreditEntry | None:
    first = next(iter(CreditEntry.objects.select_related("account").filter(key=params["key"])), None)
    if first is None:
        return None
    same = (params["owner"], params["credits"], params["source"])
    if (getattr(first.account, owner), first.amount, first.source) != same:
        raise KeyConflict(key=params["key"])
    return first
