"""
Requests that a sponsor did not pay for: counts by sponsor, rule and day, and the newest ones of each sponsor.

Anyone can make a sponsor refuse, so the newest `MOST_KEPT` requests are kept, and repeats of one call are one of them.
"""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import DatabaseError

from gateway.common import db
from gateway.common.errors import DomainError
from gateway.common.statements import Statements
from sponsors.models import RefusedRequest
from sponsors.rules.calls import Unreadable, actions_of
from sponsors.rules.policies import OutsideResponse, Question, Verification
from sponsors.services.paying import Bill
from users.models import User

logger = logging.getLogger(__name__)
MOST_KEPT = 200
# The first actions of a call are kept.
_MOST_ACTIONS = 10


class _Sql(Statements, file=__file__):
    count: str
    store: str
    trim: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that the sponsor does not pay; `key` is the same for a preparation, the call and its repeats."""

    sponsor: str
    error: DomainError
    key: str
    bill: Bill
    responses: Mapping[Question, OutsideResponse | None]


def record(refused: Sequence[Refused], *, now: datetime) -> None:
    """Count the requests, and store them as their sponsors' newest ones; an error is logged and not raised."""
    if not refused:
        return
    count([(each.sponsor, each.error.code) for each in refused], now=now)
    # The last request of a call gives its reason; one statement cannot store a row twice.
    by_call = {(each.sponsor, each.key): each for each in refused}
    requests = Counter((each.sponsor, each.key) for each in refused)
    rows = [{**_row(each), "requests": requests[call]} for call, each in by_call.items()]
    try:
        stored = db.all_rows(_Sql.store, {"rows": json.dumps(rows), "now": now})
        sponsors = sorted({sponsor_id for (sponsor_id,) in stored})
        db.all_rows(_Sql.trim, {"sponsors": sponsors, "most": MOST_KEPT})
    except DatabaseError:
        logger.warning("refused requests of sponsors could not be stored", exc_info=True)


def _row(refused: Refused) -> dict[str, Any]:
    bill = refused.bill
    return {
        "slug": refused.sponsor,
        "user_id": bill.user_id,
        "chain_id": bill.asked.chain_id,
        "key": refused.key,
        "rule": refused.error.code,
        "policy": refused.error.members.get("policy", ""),
        "server_response": _server_response(refused.responses),
        "actions": _actions(bill),
        "credits": bill.credits,
        "gas_price_wei": bill.gas_price_wei,
    }


def _server_response(responses: Mapping[Question, OutsideResponse | None]) -> str:
    """Return what the sponsor's server gave instead of a valid response."""
    faults = (
        response.fault
        for question, response in responses.items()
        if isinstance(question, Verification) and response is not None
    )
    return next(filter(None, faults), "")


def _actions(bill: Bill) -> list[list[str]]:
    try:
        actions = actions_of(bill.asked.payload, profile=bill.asked.profile, key_manager=bill.key_manager)
    except Unreadable:
        return []
    return [[action.contract, "0x" + action.function.hex()] for action in actions[:_MOST_ACTIONS]]


def count(refusals: Iterable[tuple[str, str]], *, now: datetime) -> None:
    """
    Count refusals, given as pairs of a sponsor's slug and a rule; one statement, outside any transaction.

    The counts are only statistics, so an error is logged and not raised. Refusals of unknown sponsors are not counted.
    """
    counted = Counter(refusals)
    if not counted:
        return
    rows = [{"slug": slug, "rule": rule, "requests": number} for (slug, rule), number in counted.items()]
    try:
        db.all_rows(_Sql.count, {"rows": json.dumps(rows), "day": now.astimezone(UTC).date()})
    except DatabaseError:
        logger.warning("refusals of sponsors could not be counted", exc_info=True)


def forget(user: User) -> None:
    """Delete the refused requests of a person whose account is deleted."""
    RefusedRequest.objects.filter(user=user).delete()
