"""`relay_take_slots` asked for one account nonce, without a call that would be signed."""

import json
import secrets
from typing import Any, NamedTuple

from django.conf import settings
from django.utils import timezone

from gateway.chain.signing import get_signer
from gateway.common import db
from relay.errors import RelayersBusy
from relay.models import RelayTransaction


class Slot(NamedTuple):
    """A relayer and its account nonce."""

    relayer_id: int
    relayer: str
    account_nonce: int


def ask(after: RelayTransaction, *, policy: dict[str, Any] | None = None, **wishes: Any) -> dict[str, Any]:
    """Return the row that a call of the same profile gets, on a channel of its own, with changes."""
    channel = wishes.get("channel", secrets.randbits(64))
    call = {
        "place": 0,
        "user_id": after.user_id,
        "key": secrets.token_hex(16),
        "credits": 1,
        "debt_limit": 0,
        "key_manager": after.key_manager_address,
        "controller": after.controller_address,
        "channel": channel,
        "relay_nonce": channel << 128,
        "chain_nonce": channel << 128,
        "worst_cost_wei": 1,
        "risk_wei": 0,
        "now": timezone.now().isoformat(),
    }
    rules = {
        "chain": after.chain_id,
        "addresses": get_signer().addresses(),
        "in_flight": settings.RELAY_MAX_IN_FLIGHT,
        "followers": settings.RELAY_MAX_FOLLOWERS,
        "share_percent": 100,
        "per_hour": 100,
        "per_day": 100,
    }
    columns = ("outcome", "relayer_id", "relayer_address", "account_nonce", "number", "transaction_hash")
    row = db.only_row(
        f"SELECT {', '.join(columns)} FROM relay_take_slots(%(calls)s::jsonb, %(policy)s::jsonb)",  # noqa: S608
        {"calls": json.dumps([call | wishes]), "policy": json.dumps(rules | (policy or {}))},
    )
    return dict(zip(columns, row, strict=True))


def take_slot(*, after: RelayTransaction, is_sticky: bool, worst_cost_wei: int) -> Slot:
    """
    Take an account nonce for a call of the same profile: the next of its channel if `is_sticky`, else of another.

    Raises:
        RelayersBusy: no relayer, or not that of the channel, can take it.
    """
    wishes: dict[str, Any] = {"worst_cost_wei": worst_cost_wei}
    if is_sticky:
        wishes |= {
            "channel": after.channel,
            "relay_nonce": after.relay_nonce + 1,
            "chain_nonce": after.relay_nonce,
        }
    row = ask(after, **wishes)
    if row["outcome"] != "taken":
        assert row["outcome"] == ("channel-busy" if is_sticky else "relayers-busy")
        raise RelayersBusy("The tests find no relayer.")
    return Slot(row["relayer_id"], row["relayer_address"], row["account_nonce"])
