"""The two statements that accept calls, `relay_take_slots` and `relay_insert_calls`; see `relay/functions.sql`."""

import json
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from gateway.chain.config import get_chain
from gateway.chain.signing import Signer
from gateway.common import db
from relay.models import Loss
from relay.services.accepting.calls import Slot, SubmittedCall
from relay.services.fleet import losses

_TAKE_SLOTS = "SELECT * FROM relay_take_slots(%(calls)s::jsonb, %(policy)s::jsonb)"
_INSERT_CALLS = "SELECT relay_insert_calls(%(calls)s::jsonb)"


def take_slots(calls: Sequence[SubmittedCall], policy: dict[str, Any]) -> list[Slot]:
    """Take hold, relayer and account nonce for each call; return these slots, or refusals, in the calls' order."""
    wanted = [call.wanted_slot(place) for place, call in enumerate(calls)]
    params = {"calls": json.dumps(wanted), "policy": json.dumps(policy)}
    return sorted((Slot(*row) for row in db.all_rows(_TAKE_SLOTS, params)), key=lambda slot: slot.place)


def insert_calls(rows: Sequence[dict[str, Any]]) -> None:
    """Store signed calls with their attempts; each row maps the columns of both to values."""
    db.first_row(_INSERT_CALLS, {"calls": json.dumps(rows)})


def policy_of(calls: Sequence[SubmittedCall], signer: Signer) -> dict[str, Any]:
    """
    Return the limits for taking slots.

    This may call a remote signer, so it runs before the transaction.

    Raises:
        SignerUnavailable: the remote signer does not respond.
    """
    if signer.is_remote:
        signer.require_available()
    has_risk = any(call.risk_wei for call in calls)
    limits = losses.limits_for(Loss.Kind.UNTRUSTED) if has_risk else losses.NO_LOSS
    return {
        "chain": get_chain().id,
        "addresses": signer.addresses(),
        "in_flight": settings.RELAY_MAX_IN_FLIGHT,
        "followers": settings.RELAY_MAX_FOLLOWERS,
        "share_percent": settings.RELAY_USER_SHARE_PERCENT,
        "per_hour": settings.RELAY_CANCELLED_CALLS_PER_HOUR,
        "per_day": settings.RELAY_CANCELLED_CALLS_PER_DAY,
        "user_loss_wei": limits.of_user,
        "service_loss_wei": limits.of_service,
    }
