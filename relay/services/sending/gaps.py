"""
Fill gaps: account nonces from the chain's next one up to the row's that no attempt of a call in progress will use up.

Gaps are rare: a waiting call was withdrawn after its remote signature, a transaction from outside the service took an
account nonce and a reorganisation removed it, or rows were changed by hand. Nodes queue every transaction behind a gap,
so one gap would stop its relayer permanently. A self-transfer fills the gap. It is stored before it is sent, once for
each account nonce.
"""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import F

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.fees import Fees
from gateway.chain.remote_signing import signed_outside
from gateway.chain.signing import get_signer
from gateway.chain.types import Head, SendKind, SendOutcome
from gateway.common import db
from gateway.common.statements import Statements
from gateway.common.tasks import isolated
from relay.models import SQL, GapFiller, Loss
from relay.services.fleet import losses
from relay.services.sending.replacement import bump_fees, current_fees
from signer.transactions import SELF_TRANSFER_GAS, SignedTransaction, UnsignedTransaction

logger = logging.getLogger(__name__)

# A node that lags behind another one may show a gap for some seconds.
_GRACE_SECONDS = 10
_MESSAGE_LENGTH = 500


class _Sql(Statements, file=__file__, shared=SQL):
    gaps: str


class Gap(NamedTuple):
    """An account nonce that no transaction will use up, and its relayer."""

    relayer_id: int
    address: str
    account_nonce: int


class GapWatch:
    """Remembers when each gap was first seen; the tracker calls `fill` for every new block."""

    def __init__(self) -> None:
        self._seen_at: dict[Gap, datetime] = {}

    def fill(self, *, head: Head, now: datetime) -> int:
        """
        Fill gaps that have lasted the grace period and resend earlier fillers; return how many fillers are new.

        Raises:
            NodeUnavailable: no node responded; the next call of `fill` sends the stored fillers.
        """
        self._seen_at = {gap: self._seen_at.get(gap, now) for gap in find_gaps(head=head)}
        due = now - timedelta(seconds=_GRACE_SECONDS)
        fees = current_fees(head=head)
        filled = _store((gap for gap, seen_at in self._seen_at.items() if seen_at <= due), fees, now)
        _send(head=head, fees=fees, now=now)
        return filled


def find_gaps(*, head: Head) -> list[Gap]:
    """
    Return gaps without a filler as of this block, for relayers whose keys this process has.

    A node that has not reached the block of a mined attempt does not know yet that its account nonce is used.
    """
    params = {
        "chain": get_chain().id,
        "addresses": list(get_signer().addresses()),
        "most": settings.RELAY_MAX_IN_FLIGHT,
        "head": head.number,
        "block_seconds": get_chain().block_seconds,
    }
    return [Gap._make(row) for row in db.all_rows(_Sql.gaps, params)]


def _store(gaps: Iterable[Gap], fees: Fees, now: datetime) -> int:
    stored = 0
    for gap in gaps:
        with isolated(f"filling account nonce {gap.account_nonce} of relayer {gap.address}"):
            stored += _store_filler(gap, fees, now)
    return stored


@signed_outside
def _store_filler(gap: Gap, fees: Fees, now: datetime) -> bool:
    """Store a self-transfer; False if another worker has stored it, or the service has reached its loss limit."""
    signed = _sign(gap.address, gap.account_nonce, fees)
    filler, is_new = GapFiller.objects.get_or_create(
        relayer_id=gap.relayer_id,
        account_nonce=gap.account_nonce,
        defaults={**_columns(signed, fees), "created_at": now},
    )
    if not is_new:
        return False
    key = f"gap:{gap.relayer_id}:{gap.account_nonce}"
    cost_wei = fees.highest_cost_wei(gas_limit=SELF_TRANSFER_GAS, data_bytes=0)
    if not losses.reserve(key=key, user_id=None, amount_wei=cost_wei, kind=Loss.Kind.GAP, now=now):
        filler.delete()
        return False
    # A self-transfer uses little gas, so the loss is booked at the highest possible price.
    losses.settle(key=key, lost_wei=cost_wei, now=now)
    logger.error(
        "account nonce %s of relayer %s was in no transaction; %s fills it",
        gap.account_nonce,
        gap.address,
        filler.transaction_hash,
    )
    return True


def _sign(address: str, account_nonce: int, fees: Fees) -> SignedTransaction:
    return get_signer().sign(
        relayer=address,
        transaction=UnsignedTransaction(
            chain_id=get_chain().id,
            account_nonce=account_nonce,
            max_priority_fee_per_gas_wei=fees.max_priority_fee_per_gas_wei,
            max_fee_per_gas_wei=fees.max_fee_per_gas_wei,
            gas_limit=SELF_TRANSFER_GAS,
            to=address,
            data=b"",
        ),
    )


def _columns(signed: SignedTransaction, fees: Fees) -> dict[str, object]:
    return {
        "transaction_hash": signed.transaction_hash,
        "raw": signed.raw,
        "max_fee_per_gas_wei": fees.max_fee_per_gas_wei,
        "max_priority_fee_per_gas_wei": fees.max_priority_fee_per_gas_wei,
    }


def _send(*, head: Head, fees: Fees, now: datetime) -> None:
    """Send new fillers and resend overdue ones, at higher fees where the base fee requires it."""
    addresses = list(get_signer().addresses())
    open_fillers = GapFiller.objects.filter(
        relayer__chain_id=get_chain().id,
        relayer__address__in=addresses,
        account_nonce__gte=F("relayer__mined_account_nonce"),
    ).exclude(sent_at__gt=now - timedelta(seconds=get_chain().pace.resend_seconds))
    fillers = list(open_fillers.select_related("relayer").order_by("relayer_id", "account_nonce"))
    if not fillers:
        return
    long_ago = now - timedelta(seconds=get_chain().pace.replace_seconds)
    for filler in fillers:
        is_too_cheap = filler.max_fee_per_gas_wei < head.base_fee_wei + fees.max_priority_fee_per_gas_wei
        is_next = filler.account_nonce == filler.relayer.mined_account_nonce
        # Whatever the nodes say, they may have dropped what no block takes.
        if is_too_cheap or (is_next and filler.created_at < long_ago):
            _raise_fees(filler, fees)
    outcomes = get_chain_client().send_raw_transactions([bytes(filler.raw) for filler in fillers])
    for filler, outcome in zip(fillers, outcomes, strict=True):
        with isolated(f"filling account nonce {filler.account_nonce}"):
            _note(filler, outcome, fees, now)


def _note(filler: GapFiller, outcome: SendOutcome, fees: Fees, now: datetime) -> None:
    filler.node_message = outcome.message[:_MESSAGE_LENGTH]
    if outcome.kind in {SendKind.ACCEPTED, SendKind.NONCE_TOO_LOW}:
        filler.sent_at = now
    filler.save(update_fields=["node_message", "sent_at"])
    if outcome.kind == SendKind.UNDERPRICED:
        _raise_fees(filler, fees)


def _raise_fees(filler: GapFiller, fees: Fees) -> None:
    """Sign again at higher fees if the cap allows it; either transaction fills the gap."""
    bumped = bump_fees(signed=filler, fees=fees)
    if bumped is None:
        return
    columns = _columns(_sign(filler.relayer.address, filler.account_nonce, bumped), bumped)
    for name, value in columns.items():
        setattr(filler, name, value)
    filler.save(update_fields=list(columns))
