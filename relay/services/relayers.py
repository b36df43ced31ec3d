"""
Keep the rows of relayers in sync with the chain; pause them.

Which relayer sends a call, and with which account nonce, is decided by `relay_take_slots` under the row's lock.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Greatest

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.signing import get_signer
from gateway.chain.types import AccountState
from gateway.common import db
from relay.models import Relayer


def seconds_until_next_block() -> int:
    """Return after how many seconds a request may be repeated: a new block frees account nonces."""
    return max(1, min(get_chain().block_seconds, settings.RELAY_TRACK_SECONDS + 1))


def register_new_relayers(*, now: datetime) -> int:
    """
    Write a row for each key of the signer that has none, starting at the chain's transaction count.

    Two processes may do it at once: chain and address are unique and the first row stays.

    Raises:
        NodeUnavailable: no node answered.
    """
    addresses = get_signer().addresses()
    relayers = Relayer.objects.filter(chain_id=get_chain().id, address__in=addresses)
    registered = set(relayers.values_list("address", flat=True))
    new = [address for address in addresses if address not in registered]
    if not new:
        return 0
    view = get_chain_client().read_chain(
        transaction_hashes=[], accounts=new, confirmations=get_chain().confirmations
    )
    Relayer.objects.bulk_create(
        [_row(address, view.accounts[address], now) for address in new], ignore_conflicts=True
    )
    return len(new)


def _row(address: str, account: AccountState, now: datetime) -> Relayer:
    return Relayer(
        chain_id=get_chain().id,
        address=address,
        next_account_nonce=account.latest_nonce,
        mined_account_nonce=account.latest_nonce,
        balance_wei=account.balance_wei,
        synced_at=now,
    )


def sync(*, now: datetime) -> int:
    """
    Register new relayers and read every account from the chain; return how many were registered.

    Raises:
        NodeUnavailable: no node answered.
    """
    registered_count = register_new_relayers(now=now)
    relayers = list(Relayer.objects.filter(chain_id=get_chain().id))
    view = get_chain_client().read_chain(
        transaction_hashes=[],
        accounts=[relayer.address for relayer in relayers],
        confirmations=get_chain().confirmations,
    )
    update_accounts(relayers=relayers, accounts=view.accounts, now=now)
    return registered_count


def update_accounts(
    *, relayers: Sequence[Relayer], accounts: Mapping[str, AccountState], now: datetime
) -> None:
    """
    Store mined nonces and balances.

    Where the chain is ahead of us, the key was used elsewhere: the next account
    nonce jumps forward, since those before it are used up.
    """
    # In several statements, so that requests find a relayer that is not locked.
    size = max(1, len(relayers) // 4)
    groups = [relayers[start : start + size] for start in range(0, len(relayers), size)]
    updated = {row_id for group in groups for row_id in _update_together(group, accounts, now)}
    for relayer in relayers:
        if relayer.pk not in updated:
            _update_account(relayer, accounts[relayer.address], now)


def _update_together(
    relayers: Sequence[Relayer], accounts: Mapping[str, AccountState], now: datetime
) -> list[int]:
    """Update those that no request has locked, and return their ids."""
    params = {
        "ids": [relayer.pk for relayer in relayers],
        "nonces": [accounts[relayer.address].latest_nonce for relayer in relayers],
        "balances": [accounts[relayer.address].balance_wei for relayer in relayers],
        "now": now,
    }
    return [row_id for (row_id,) in db.all_rows(_UPDATE_RELAYERS, params)]


def _update_account(relayer: Relayer, account: AccountState, now: datetime) -> None:
    """Wait for the request that has locked this relayer, without locking any other meanwhile."""
    Relayer.objects.filter(pk=relayer.pk).update(
        mined_account_nonce=account.latest_nonce,
        next_account_nonce=Greatest(F("next_account_nonce"), account.latest_nonce),
        balance_wei=account.balance_wei,
        synced_at=now,
    )


def set_active(*, relayer_id: int, is_active: bool) -> bool:
    """Pause or resume a relayer; what it has in flight goes on. Returns False where nothing changes."""
    return bool(
        Relayer.objects.filter(pk=relayer_id).exclude(is_active=is_active).update(is_active=is_active)
    )


# What the newest block says of relayers. Where the chain is ahead of us, the next account nonce jumps forward.
# Rows that a request has locked are left out and not returned: waiting for one would keep the others locked
# against all requests meanwhile.
_UPDATE_RELAYERS = """
WITH free AS (
    SELECT id FROM relay_relayer WHERE id = ANY(%(ids)s::bigint[]) FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE relay_relayer AS relayer
SET mined_account_nonce = account.nonce, next_account_nonce = greatest(next_account_nonce, account.nonce),
    balance_wei = account.balance, synced_at = %(now)s
FROM unnest(%(ids)s::bigint[], %(nonces)s::bigint[], %(balances)s::numeric[]) AS account (id, nonce, balance)
JOIN free USING (id)
WHERE relayer.id = account.id
RETURNING relayer.id
"""
