"""`relay_take_slots` asked for one account nonce, without a call that would be signed."""

import json
import secrets
from typing import NamedTuple

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


def take_slot(*, after: RelayTransaction, is_sticky: bool, worst_cost_wei: int) -> Slot:
    """
    Take an account nonce for a call of the same profile: the next of its channel if `is_sticky`, else of another.

    Raises:
        RelayersBusy: no relayer, or not that of the channel, can take it.
    """
    channel = after.channel if is_sticky else secrets.randbits(64)
    chain_nonce = after.relay_nonce if is_sticky else channel << 128
    call = {
        "place": 0,
        "user_id": after.user_id,
        "key": secrets.token_hex(16),
        "credits": 1,
        "debt_limit": 0,
        "key_manager": after.key_manager_address,
        "controller": after.controller_address,
        "channel": channel,
        "relay_nonce": chain_nonce + is_sticky,
        "chain_nonce": chain_nonce,
        "worst_cost_wei": worst_cost_wei,
        "risk_wei": 0,
        "now": timezone.now().isoformat(),
    }
    policy = {
        "chain": after.chain_id,
        "addresses": get_signer().addresses(),
        "in_flight": settings.RELAY_MAX_IN_FLIGHT,
        "followers": settings.RELAY_MAX_FOLLOWERS,
        "share_percent": 100,
        "per_hour": 100,
        "per_day": 100,
    }
    outcome, *slot = db.only_row(
        "SELECT outcome, relayer_id, relayer_address, account_nonce"
        " FROM relay_take_slots(%(calls)s::jsonb, %(policy)s::jsonb)",
        {"calls": json.dumps([call]), "policy": json.dumps(policy)},
    )
    if outcome != "taken":
        assert outcome == ("channel-busy" if is_sticky else "relayers-busy")
        raise RelayersBusy("The tests find no relayer.")
    return Slot(*slot)
