"""
Top up relayers from the treasury before they run out of funds.

One transfer is in flight at a time. It is stored before it is sent, and resent until it is mined. It uses the account
nonce that the chain expects next, so neither a crash nor a second worker can pay twice.
"""

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.fees import Fees
from gateway.chain.remote_signing import signed_outside
from gateway.chain.signing import get_signer
from gateway.chain.treasury import TRANSFER_GAS, get_treasury
from gateway.chain.types import AccountState, ChainView, Head, Receipt
from gateway.common.fields import checksum
from relay.models import Relayer, TopUp, Treasury
from relay.queries.figures import top_ups
from relay.services.sending.replacement import bump_fees, current_fees

logger = logging.getLogger(__name__)
# The last log message about each treasury that cannot pay, so that each is logged once and not at every block.
_logged: dict[str, str] = {}

_Status = TopUp.Status
_DAY = timedelta(days=1)


def treasury_address() -> str:
    """Return the address of the account that funds relayers; empty if there is none."""
    treasury = get_treasury()
    if treasury is not None:
        return treasury.address
    return checksum(get_chain().funding.treasury_address) if get_chain().funding.treasury_address else ""


def top_up(*, now: datetime) -> TopUp | None:
    """
    Read the treasury's balance, then follow the transfer in flight or begin one for the relayer with the least funds.

    Returns the transfer that was sent or resent. A process without the treasury's key only reads the balance.

    Raises:
        NodeUnavailable: no node responded; the next run continues.
    """
    address = treasury_address()
    if not address:
        return None
    slot = _slot_on_the_way(address)
    view = get_chain_client().read_chain(
        transaction_hashes=[row.transaction_hash for row in slot],
        accounts=[address],
        confirmations=get_chain().confirmations,
    )
    account = view.account(address)
    _store(address, account, now)
    if get_treasury() is None:
        return None
    if slot:
        return _follow(slot, view, account, now=now)
    return _begin(address, account, view.head, now=now)


def read_treasury(*, now: datetime) -> Treasury | None:
    """
    Read the treasury's balance, store and return it; None without a treasury.

    Raises:
        NodeUnavailable: no node responded.
    """
    address = treasury_address()
    if not address:
        return None
    view = get_chain_client().read_chain(
        transaction_hashes=[], accounts=[address], confirmations=get_chain().confirmations
    )
    return _store(address, view.account(address), now)


def _store(address: str, account: AccountState, now: datetime) -> Treasury:
    treasury, _ = Treasury.objects.update_or_create(
        chain_id=get_chain().id,
        address=address,
        defaults={"balance_wei": account.balance_wei, "synced_at": now},
    )
    return treasury


def sent_in_last_day(*, now: datetime) -> int:
    """Return the wei that the treasury has sent within 24 hours, of at most RELAY_TOP_UP_DAILY_WEI."""
    return top_ups(since=now - _DAY)[0]


def _slot_on_the_way(address: str) -> list[TopUp]:
    """Return the transfer in flight, preceded by those that it replaced."""
    sent = TopUp.objects.filter(
        chain_id=get_chain().id, treasury_address=address, status=_Status.SENT
    ).first()
    if sent is None:
        return []
    same_nonce = TopUp.objects.filter(
        chain_id=sent.chain_id, treasury_address=address, account_nonce=sent.account_nonce
    )
    return list(same_nonce.select_related("relayer").order_by("sequence"))


def _begin(address: str, account: AccountState, head: Head, *, now: datetime) -> TopUp | None:
    relayer = _poorest()
    if relayer is None:
        return None
    fees = current_fees(head=head)
    left = account.balance_wei - fees.highest_cost_wei(gas_limit=TRANSFER_GAS, data_bytes=0)
    left_today = get_chain().funding.daily_wei - sent_in_last_day(now=now)
    amount = min(get_chain().funding.to_wei - int(relayer.balance_wei), left, left_today)
    if amount < get_chain().funding.below_wei:
        _log_once(
            address,
            f"its daily limit of {get_chain().funding.daily_wei} wei is reached"
            if left_today <= left
            else f"it holds {account.balance_wei} wei, too little for a transfer; "
            f"send {get_chain().currency} to {address}",
        )
        return None
    _logged.pop(address, None)
    row = _signed(relayer, address, account.latest_nonce, 0, amount, fees, now=now)
    # Another worker may have begun a transfer, or the node may not know the previous one yet; then this one is dropped.
    stored = TopUp.objects.bulk_create([row], ignore_conflicts=True)
    if not TopUp.objects.filter(transaction_hash=stored[0].transaction_hash, status=_Status.SENT).exists():
        return None
    logger.info("relayer %s gets %d wei from the treasury", relayer.address, amount)
    return _send(row)


def _log_once(treasury: str, lack: str) -> None:
    if _logged.get(treasury) != lack:
        _logged[treasury] = lack
        logger.warning("no relayer is topped up by the treasury %s: %s", treasury, lack)


def _poorest() -> Relayer | None:
    poor = Relayer.objects.filter(
        chain_id=get_chain().id,
        address__in=get_signer().addresses(),
        retired_at__isnull=True,
        quarantined_at__isnull=True,
        balance_wei__lt=get_chain().funding.below_wei,
    )
    # The tracker must see a transfer arrive before the next one begins.
    unseen = TopUp.objects.filter(
        relayer=OuterRef("pk"),
        status__in=(_Status.MINED, _Status.LOST),
        ended_at__gte=OuterRef("synced_at"),
    )
    return poor.exclude(Exists(unseen)).order_by("balance_wei", "pk").first()


def _follow(slot: list[TopUp], view: ChainView, account: AccountState, *, now: datetime) -> TopUp | None:
    newest = slot[-1]
    for row in slot:
        receipt = view.receipts.get(row.transaction_hash)
        if receipt and receipt.block_number <= view.head.number - get_chain().confirmations + 1:
            _end(slot, row, receipt, now=now)
            return None
        # The transfer is mined but not confirmed yet, or the nodes disagree about it.
        if receipt or row.transaction_hash in view.undecided:
            return None
    if account.confirmed_nonce > newest.account_nonce:
        logger.error("the treasury's account nonce %d was used elsewhere", newest.account_nonce)
        TopUp.objects.filter(pk=newest.pk, status=_Status.SENT).update(status=_Status.LOST, ended_at=now)
        return None
    return _send(_replaced(newest, view.head, now=now) or newest)


@transaction.atomic(durable=True)
def _end(slot: list[TopUp], mined: TopUp, receipt: Receipt, *, now: datetime) -> None:
    TopUp.objects.filter(pk__in=[row.pk for row in slot]).update(status=_Status.REPLACED)
    TopUp.objects.filter(pk=mined.pk).update(
        status=_Status.MINED,
        fee_wei=receipt.cost_wei,
        block_number=receipt.block_number,
        ended_at=now,
    )


@signed_outside
def _replaced(newest: TopUp, head: Head, *, now: datetime) -> TopUp | None:
    """Sign the transfer again with higher fees, if no block has taken it for long."""
    if newest.created_at > now - timedelta(seconds=get_chain().pace.replace_seconds):
        return None
    bumped = bump_fees(signed=newest, fees=current_fees(head=head))
    if bumped is None:
        return None
    if not TopUp.objects.filter(pk=newest.pk, status=_Status.SENT).update(status=_Status.REPLACED):
        return None
    row = _signed(
        newest.relayer,
        newest.treasury_address,
        newest.account_nonce,
        newest.sequence + 1,
        int(newest.amount_wei),
        bumped,
        now=now,
    )
    row.save(force_insert=True)
    return row


def _signed(
    relayer: Relayer,
    address: str,
    account_nonce: int,
    sequence: int,
    amount_wei: int,
    fees: Fees,
    *,
    now: datetime,
) -> TopUp:
    treasury = get_treasury()
    assert treasury is not None, "only a process with the key begins a transfer"  # noqa: S101
    signed = treasury.sign_transfer(
        to=relayer.address,
        value_wei=amount_wei,
        account_nonce=account_nonce,
        fees=fees,
        relayers=get_signer().addresses(),
    )
    return TopUp(
        chain_id=get_chain().id,
        relayer=relayer,
        treasury_address=address,
        account_nonce=account_nonce,
        sequence=sequence,
        amount_wei=amount_wei,
        max_fee_per_gas_wei=fees.max_fee_per_gas_wei,
        max_priority_fee_per_gas_wei=fees.max_priority_fee_per_gas_wei,
        transaction_hash=signed.transaction_hash,
        raw=signed.raw,
        created_at=now,
    )


def _send(row: TopUp) -> TopUp:
    """Send the bytes to the node, and ignore its response: they are resent until the account nonce is used."""
    get_chain_client().send_raw_transactions([bytes(row.raw)])
    return row
