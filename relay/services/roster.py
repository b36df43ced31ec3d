"""The roster of relayers: rows for the keys we hold, and what the chain says of their accounts."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.models import F
from django.db.models.functions import Greatest

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.signing import get_signer
from gateway.chain.types import AccountState
from gateway.common import sql
from relay.models import Relayer
from relay.services import bulk_statements


def enlist_new_relayers(*, now: datetime) -> int:
    """
    Write a row for each key of the signer that has none, starting at the chain's transaction count.

    Safe when two processes do it at once: the address is unique and the first row stays.

    Raises:
        NodeUnavailable: no node answered.
    """
    addresses = get_signer().addresses()
    known = set(Relayer.objects.filter(address__in=addresses).values_list("address", flat=True))
    new = [address for address in addresses if address not in known]
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
        address=address,
        next_account_nonce=account.latest_nonce,
        mined_account_nonce=account.latest_nonce,
        balance_wei=account.balance_wei,
        synced_at=now,
    )


def synchronise(*, now: datetime) -> int:
    """
    Enlist new relayers and read every account from the chain; return how many were enlisted.

    Raises:
        NodeUnavailable: no node answered.
    """
    enlisted = enlist_new_relayers(now=now)
    relayers = list(Relayer.objects.all())
    view = get_chain_client().read_chain(
        transaction_hashes=[],
        accounts=[relayer.address for relayer in relayers],
        confirmations=get_chain().confirmations,
    )
    note_accounts(relayers=relayers, accounts=view.accounts, now=now)
    return enlisted


def note_accounts(
    *, relayers: Sequence[Relayer], accounts: Mapping[str, AccountState], now: datetime
) -> None:
    """
    Write down mined nonces and balances.

    Where the chain is ahead of us, somebody used the key elsewhere: the next
    account nonce jumps forward, since the ones between are gone.
    """
    params = {
        "ids": [relayer.pk for relayer in relayers],
        "nonces": [accounts[relayer.address].latest_nonce for relayer in relayers],
        "balances": [accounts[relayer.address].balance_wei for relayer in relayers],
        "now": now,
    }
    noted = {row_id for (row_id,) in sql.all_rows(bulk_statements.NOTE_ACCOUNTS, params)}
    for relayer in relayers:
        if relayer.pk not in noted:
            _note_account(relayer, accounts[relayer.address], now)


def _note_account(relayer: Relayer, account: AccountState, now: datetime) -> None:
    """Wait for the request that holds the relayer, without holding any other meanwhile."""
    Relayer.objects.filter(pk=relayer.pk).update(
        mined_account_nonce=account.latest_nonce,
        next_account_nonce=Greatest(F("next_account_nonce"), account.latest_nonce),
        balance_wei=account.balance_wei,
        synced_at=now,
    )


def set_active(*, relayer_id: int, is_active: bool) -> bool:
    """Let a relayer take new calls or none; what is in flight goes on. Returns False where nothing changes."""
    return bool(
        Relayer.objects.filter(pk=relayer_id).exclude(is_active=is_active).update(is_active=is_active)
    )
