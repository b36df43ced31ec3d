"""
Keep the rows of relayers in sync with the chain; request more relayers, pause, quarantine and retire them.

`relay_take_slots` decides under the row's lock which relayer sends a call, and with which account nonce.
"""

import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import Exists, F
from django.db.models.functions import Coalesce

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.errors import NodeUnavailable
from gateway.chain.signing import get_signer
from gateway.chain.types import AccountState
from gateway.common import db
from gateway.common.statements import Statements, fill
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import Done, Kind
from gateway.staff.models import ApprovalRequest
from gateway.web.process import Faults
from relay.errors import NoSpareRelayer
from relay.models import SQL, Attempt, Relayer, RelayTransaction
from relay.services.fleet import prices
from users.models import User

logger = logging.getLogger(__name__)
# How long to wait for a relayer's row; a request locks it for only a few milliseconds.
_LOCK_MILLISECONDS = 500
_USED_ELSEWHERE = "A transaction from outside the service used the account nonce."
NONE_ACTIVE, ALL_EMPTY = "none is active", "all are empty"
# 100,000 gas at 1 gwei.
_CHEAPEST_CALL_WEI = 10**14


class _Sql(Statements, file=__file__, shared=SQL):
    catch_up: str
    update_relayers: str
    timeline: str


def seconds_until_next_block() -> int:
    """Return the `Retry-After` of a request that found no free account nonce: the next block frees some."""
    return max(1, math.floor(min(get_chain().block_seconds, get_chain().pace.track_seconds + 1)))


def lack(*, cost_wei: int) -> str:
    """
    Return why no relayer can pay for a call that costs this much, even with nothing in flight; empty if one can.

    It is `NONE_ACTIVE` or `ALL_EMPTY`.
    """
    active = Relayer.objects.filter(chain_id=get_chain().id, is_active=True)
    balances = active.values_list("balance_wei", flat=True)
    if not balances:
        return NONE_ACTIVE
    return "" if max(balances) >= cost_wei else ALL_EMPTY


def faults() -> Faults:
    """For `/readyz`: return why no relayer can take a call. Relayers with calls in flight are no fault."""
    fault = lack(cost_wei=_CHEAPEST_CALL_WEI)
    return {"relayers": fault} if fault else {}


def register_new_relayers(*, now: datetime) -> int:
    """
    Write a row for each key of the signer that has none; its account nonces start at the chain's transaction count.

    Spare keys get no row until their use is approved (`request_relayer`). Two processes may run this at once: chain
    and address are unique together, so the second insert is ignored.

    Raises:
        NodeUnavailable: no node responded.
    """
    spare = set(get_signer().spare_addresses())
    approved = _approved() if spare else set()
    new = [address for address in _unregistered() if address not in spare or address in approved]
    _register(new, now)
    return len(new)


def request_relayer(*, actor: User, reason: str, key: str) -> ApprovalRequest:
    """
    Request the use of the signer's next spare key.

    After the approval, the next sync registers the relayer, and it takes calls once it has funds. A repeated `key`
    returns the first request.

    Raises:
        PermissionDenied, ReasonRequired, RequestConflict: see `approvals.ask`.
        NoSpareRelayer: every key of the signer is in use or requested, or this process has no keys.
    """
    spare = set(get_signer().spare_addresses()) - _approved()
    waiting = ApprovalRequest.objects.waiting().filter(kind=ADD.name).exclude(key=key)
    spare -= set(waiting.values_list("payload__address", flat=True))
    address = next((address for address in _unregistered() if address in spare), None)
    if address is None:
        raise NoSpareRelayer("Every key is in service. Add keys and restart.")
    return approvals.ask(
        kind=ADD,
        actor=actor,
        reason=reason,
        key=key,
        row=Relayer(address=address),
        payload={"address": address},
        changes={"relayer": ("", address)},
    )


def _approved() -> set[str]:
    """Return the addresses of spare keys whose use was approved."""
    done = ApprovalRequest.objects.filter(kind=ADD.name, status=ApprovalRequest.Status.DONE)
    return set(done.values_list("payload__address", flat=True))


ADD = approval_kinds.register(
    Kind(
        name="add_relayer",
        title="Add a relayer",
        asks="relay.add_spare_relayer",
        decides="relay.decide_relayer",
        # Registration queries a node, so the next sync does it.
        carry_out=lambda approval: Done(f"{approval.subject} is registered within a minute.", approval),
    )
)


def request_return(*, relayer_id: int, actor: User, reason: str, key: str) -> ApprovalRequest:
    """
    Request the return of a retired relayer. A repeated `key` returns the first request.

    Raises:
        PermissionDenied, ReasonRequired, RequestConflict: see `approvals.ask`.
    """
    return approvals.ask(
        kind=RETURN,
        actor=actor,
        reason=reason,
        key=key,
        row=Relayer.objects.get(pk=relayer_id),
        payload={},
        changes={"state": ("retired", "paused")},
    )


def _carry_out_return(approval: ApprovalRequest) -> Done:
    relayer = Relayer.objects.get(pk=approval.object_id)
    return Done(
        "It is back, paused." if bring_back(relayer_id=relayer.pk) else "It was not retired.", relayer
    )


RETURN = approval_kinds.register(
    Kind(
        name="bring_back_relayer",
        title="Bring back a relayer",
        asks="relay.add_spare_relayer",
        decides="relay.decide_relayer",
        carry_out=_carry_out_return,
    )
)


def _unregistered() -> list[str]:
    addresses = get_signer().addresses()
    rows = Relayer.objects.filter(chain_id=get_chain().id, address__in=addresses)
    registered = set(rows.values_list("address", flat=True))
    return [address for address in addresses if address not in registered]


def _register(addresses: Sequence[str], now: datetime) -> None:
    if not addresses:
        return
    view = get_chain_client().read_chain(
        transaction_hashes=[], accounts=addresses, confirmations=get_chain().confirmations
    )
    pending = get_chain_client().read_pending_nonces(accounts=addresses)
    rows = [_row(address, view.account(address), pending[address], now) for address in addresses]
    prices.begin()
    Relayer.objects.bulk_create(rows, ignore_conflicts=True)


def _row(address: str, account: AccountState, pending_nonce: int, now: datetime) -> Relayer:
    return Relayer(
        chain_id=get_chain().id,
        address=address,
        next_account_nonce=max(account.latest_nonce, pending_nonce),
        mined_account_nonce=account.latest_nonce,
        balance_wei=account.balance_wei,
        synced_at=now,
    )


def in_service(*, now: datetime) -> list[Relayer]:
    """
    Return the relayers of this chain that are not retired, after registering those that have no row yet.

    Raises:
        NodeUnavailable: no node responded while a new relayer was registered.
    """
    rows = Relayer.objects.filter(chain_id=get_chain().id)
    relayers, signer = list(rows), get_signer()
    without_row = set(signer.addresses()) - {relayer.address for relayer in relayers}
    if without_row and without_row - (set(signer.spare_addresses()) - _approved()):
        register_new_relayers(now=now)
        relayers = list(rows.all())
    return [relayer for relayer in relayers if relayer.retired_at is None]


def sync(*, now: datetime, trusts_single_node: bool = False) -> int:
    """
    Register new relayers and read every account from the chain; return how many were registered.

    Raises:
        NodeUnavailable: no node responded, or see `update_accounts`.
    """
    registered_count = register_new_relayers(now=now)
    relayers = in_service(now=now)
    view = get_chain_client().read_chain(
        transaction_hashes=[],
        accounts=[relayer.address for relayer in relayers],
        confirmations=get_chain().confirmations,
    )
    update_accounts(relayers=relayers, accounts=view.accounts, now=now, trusts_single_node=trusts_single_node)
    catch_up(relayers=relayers, now=now)
    return registered_count


def without_timeline(relayers: Sequence[Relayer]) -> list[Relayer]:
    """Return the relayers whose account nonces were not compared with the nodes since PostgreSQL's last fail-over."""
    (timeline,) = db.only_row(_Sql.timeline, {})
    return [relayer for relayer in relayers if relayer.timeline != timeline]


def catch_up(*, relayers: Sequence[Relayer], now: datetime) -> None:
    """
    After a fail-over of PostgreSQL, adopt account nonces that the nodes and their pools know and the rows have lost.

    A relayer takes no call between the fail-over and this comparison. A relayer that lost account nonces is
    quarantined. Nodes cannot move an account nonce further than a relayer's maximum in flight.

    Raises:
        NodeUnavailable: too few nodes responded.
    """
    if not relayers:
        return
    pending = get_chain_client().read_pending_nonces(accounts=[relayer.address for relayer in relayers])
    for relayer in relayers:
        params = {
            "id": relayer.pk,
            "pending": pending[relayer.address],
            "cap": settings.RELAY_MAX_IN_FLIGHT,
            "now": now,
        }
        before, after = db.only_row(_Sql.catch_up, params)
        if after > before:
            logger.error(
                "relayer %s is quarantined: the nodes know its account nonces %d to %d, and no row does",
                relayer.address,
                before,
                after - 1,
            )


def update_accounts(
    *,
    relayers: Sequence[Relayer],
    accounts: Mapping[str, AccountState],
    now: datetime,
    trusts_single_node: bool = False,
) -> None:
    """
    Store mined account nonces and balances.

    If the chain is ahead of the row, the key was used elsewhere. The next account nonce then jumps to that of the
    chain, and the relayer is quarantined: it takes no call until staff resume it. A relayer with code is quarantined as
    well: its key has signed a delegation elsewhere (EIP-7702), and nodes accept only one pending transaction of such an
    account.

    Raises:
        NodeUnavailable: the quorum is a single node, and it reports this for most relayers at once, which suggests
            that the node is wrong. Nothing is stored and calls in flight stay unchanged, until the node reports
            something else or the caller sets `trusts_single_node`.
    """
    # A relayer whose state no node reports stays unchanged.
    relayers = [relayer for relayer in relayers if relayer.address in accounts]
    if not relayers:
        return
    if not trusts_single_node:
        _refuse_single_node(relayers, accounts)
    # Several statements lock a part of the relayers each, so that requests always find one that is not locked.
    size = max(1, len(relayers) // 4)
    groups = [relayers[start : start + size] for start in range(0, len(relayers), size)]
    updated = {row_id for group in groups for row_id in _update(group, accounts, now, locked="SKIP LOCKED")}
    for relayer in relayers:
        if relayer.pk not in updated:
            _update_when_free(relayer, accounts, now)


def _update_when_free(relayer: Relayer, accounts: Mapping[str, AccountState], now: datetime) -> None:
    """Update one row, without a lock on any other; leave it to the next block if a request keeps it locked."""
    try:
        with transaction.atomic():
            db.limit_lock_waits(_LOCK_MILLISECONDS)
            _update([relayer], accounts, now)
    except OperationalError as error:
        if not db.is_lock_timeout(error):
            raise
        logger.warning("relayer %s is locked; its account is stored with the next block", relayer.address)


def _ahead(relayers: Iterable[Relayer], accounts: Mapping[str, AccountState]) -> dict[str, int]:
    """Return, by address, how many account nonces the chain has used but the rows have not; 0 for one that has code."""
    counts = {
        relayer.address: accounts[relayer.address].latest_nonce - relayer.next_account_nonce
        for relayer in relayers
    }
    return {
        address: max(0, count) for address, count in counts.items() if count > 0 or accounts[address].has_code
    }


def _refuse_single_node(relayers: Sequence[Relayer], accounts: Mapping[str, AccountState]) -> None:
    if get_chain().quorum > 1 or not _are_most(_ahead(relayers, accounts), relayers):
        return
    # Calls may have been accepted and mined since the rows were read.
    rows = Relayer.objects.filter(pk__in=[relayer.pk for relayer in relayers])
    ahead = _ahead(rows, accounts)
    if _are_most(ahead, relayers):
        raise NodeUnavailable(
            f"The only chain node reports that {len(ahead)} of {len(relayers)} relayers' keys were used elsewhere. "
            "A single node's report is rejected when it affects most relayers."
        )


def _are_most(ahead: Collection[str], relayers: Sequence[Relayer]) -> bool:
    """Return whether a report affects most relayers. One leaked key is plausible, many at once are not."""
    return len(ahead) > max(1, len(relayers) // 2)


def _update(
    relayers: Sequence[Relayer], accounts: Mapping[str, AccountState], now: datetime, *, locked: str = ""
) -> list[int]:
    """Update relayers and return their ids; with `SKIP LOCKED` only those that no request has locked."""
    params = {
        "ids": [relayer.pk for relayer in relayers],
        "nonces": [accounts[relayer.address].latest_nonce for relayer in relayers],
        "highest": [accounts[relayer.address].highest_nonce for relayer in relayers],
        "balances": [accounts[relayer.address].balance_wei for relayer in relayers],
        "codes": [accounts[relayer.address].has_code for relayer in relayers],
        "now": now,
    }
    rows = db.all_rows(fill(_Sql.update_relayers, {"locked": locked}), params)
    for _, address, count, gets_code in rows:
        if gets_code:
            logger.error(
                "relayer %s is quarantined: it has code (EIP-7702), so its key has signed a delegation elsewhere",
                address,
            )
        if count > 0:
            logger.error(
                "relayer %s is quarantined: the chain has %d of its account nonces that we never used",
                address,
                count,
            )
    return [row_id for row_id, *_ in rows]


def quarantine_used_elsewhere(*, attempt_ids: Collection[int], now: datetime) -> None:
    """
    Quarantine the relayers of attempts whose account nonce a transaction from outside the service has used.

    Each attempt counts once, so that staff can resume the relayer before its call is settled.
    """
    new = Attempt.objects.filter(pk__in=attempt_ids).exclude(node_message=_USED_ELSEWHERE)
    for attempt in new.select_related("relayer"):
        logger.error(
            "relayer %s is quarantined: its account nonce %d was used by a transaction that is not ours",
            attempt.relayer.address,
            attempt.account_nonce,
        )
        with transaction.atomic():
            Attempt.objects.filter(pk=attempt.pk).update(node_message=_USED_ELSEWHERE)
            Relayer.objects.filter(pk=attempt.relayer_id, retired_at__isnull=True).update(
                is_active=False, quarantined_at=Coalesce("quarantined_at", now)
            )


def set_active(*, relayer_id: int, is_active: bool) -> bool:
    """
    Pause or resume a relayer. Calls in flight continue, and resuming ends its quarantine.

    Returns False if nothing changes; so it does for a retired relayer, which must be brought back first.
    """
    rows = Relayer.objects.filter(pk=relayer_id, retired_at__isnull=True).exclude(is_active=is_active)
    return bool(rows.update(is_active=is_active, **({"quarantined_at": None} if is_active else {})))


def retire(*, relayer_id: int, now: datetime) -> bool:
    """Retire a paused relayer that has nothing in flight. Returns False for any other relayer."""
    drained = Relayer.objects.filter(
        pk=relayer_id,
        is_active=False,
        retired_at__isnull=True,
        next_account_nonce__lte=F("mined_account_nonce"),
    )
    open_calls = RelayTransaction.objects.in_progress().filter(relayer_id=relayer_id)
    return bool(drained.exclude(Exists(open_calls)).update(retired_at=now, quarantined_at=None))


def bring_back(*, relayer_id: int) -> bool:
    """Return a retired relayer to service, but paused: its account is read from the chain before staff resume it."""
    return bool(Relayer.objects.filter(pk=relayer_id, retired_at__isnull=False).update(retired_at=None))
