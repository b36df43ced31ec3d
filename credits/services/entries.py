"""
Put credits on an account or take them off: grants, reversals, and corrections by staff.

Each is posted once per key: a repeated key returns the first entry and moves nothing, and `KeyConflict`
says that it names another user, amount or source. The reason is the first caller's and is not compared.
"""

from collections.abc import Mapping
from typing import Any

from credits.errors import KeyConflict
from credits.models import CreditAccount, CreditEntry, EntrySource
from credits.services import statements
from gateway.common.errors import stated
from users.models import User

_REVERSALS = {EntrySource.PAYOUT_CLAWBACK, EntrySource.EARNING_REVERSAL}
# These are posted by `capture` and `adjust` alone, with the rows and names they need.
_NOT_GRANTED = {EntrySource.RELAY_TRANSACTION, EntrySource.STAFF_ADJUSTMENT}


def open_account(*, user_id: int) -> CreditAccount:
    """Return the user's account, opened empty by the first of any number of simultaneous callers."""
    CreditAccount.objects.bulk_create([CreditAccount(user_id=user_id)], ignore_conflicts=True)
    return CreditAccount.objects.get(user_id=user_id)


def lock_account(*, user: User) -> None:
    """Lock the user's account, opened where it was not, until the transaction ends."""
    own = CreditAccount.objects.select_for_update(no_key=True).filter(user_id=user.pk)
    if own.first() is None:
        open_account(user_id=user.pk)
        own.get()


def grant(*, user: User, credits: int, source: str, key: str, reason: str = "") -> CreditEntry:
    """
    Give a user credits.

    Raises:
        ValueError: `credits` is not positive, or the source is not one that is granted.
    """
    if credits <= 0:
        raise ValueError("a grant is a positive number of credits")
    if EntrySource(source) in _NOT_GRANTED:
        raise ValueError(f"{source} is not granted")
    return _post(user=user, credits=credits, source=source, key=key, actor=None, reason=reason)


def reverse(*, user: User, credits: int, source: str, key: str, reason: str = "") -> CreditEntry:
    """
    Take back credits whose reason did not last; the balance may end below zero.

    Raises:
        ValueError: `credits` is not positive, or the source is no reversal.
    """
    if credits <= 0:
        raise ValueError("a reversal is a positive number of credits")
    if EntrySource(source) not in _REVERSALS:
        raise ValueError(f"{source} is no reversal")
    return _post(user=user, credits=-credits, source=source, key=key, actor=None, reason=reason)


def adjust(*, user: User, credits: int, key: str, actor: User | None, reason: str) -> CreditEntry:
    """
    Correct a balance by a signed number of credits; it may end below zero.

    `actor` is the member of staff, or None where only the machine's operator is known.

    Raises:
        ReasonRequired: the reason is blank.
        ValueError: `credits` is zero.
    """
    if credits == 0:
        raise ValueError("an adjustment moves at least one credit")
    source, why = EntrySource.STAFF_ADJUSTMENT, stated(reason)
    return _post(user=user, credits=credits, source=source, key=key, actor=actor, reason=why)


def _post(*, user: User, credits: int, source: str, key: str, actor: User | None, reason: str) -> CreditEntry:
    params = {
        "user": user.pk,
        "credits": credits,
        "source": str(source),
        "key": key,
        "actor": actor.pk if actor else None,
        "reason": reason,
    }
    while (entry := _insert(params) or _repeat(params)) is None:
        open_account(user_id=user.pk)  # Nothing else can be missing.
    return entry


def _insert(params: Mapping[str, Any]) -> CreditEntry | None:
    return next(iter(CreditEntry.objects.raw(statements.POST_ENTRY, params)), None)


def _repeat(params: Mapping[str, Any]) -> CreditEntry | None:
    first = next(iter(CreditEntry.objects.select_related("account").filter(key=params["key"])), None)
    if first is None:
        return None
    same = (params["user"], params["credits"], params["source"])
    if (first.account.user_id, first.amount, first.source) != same:
        raise KeyConflict(key=params["key"])
    return first
