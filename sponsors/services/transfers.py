"""
Transfers of paid credits from a member's account to a sponsor.

A transfer that would exceed `SPONSOR_TRANSFER_PER_DAY`, for the person or for the sponsor in a UTC day, moves nothing
and waits for two members of staff: one requests the move, another approves it. The locks of both accounts, the
person's first, serialise all transfers of both.
"""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from credits.lots import Lot
from credits.models import CreditAccount
from credits.services import transfers as ledger
from credits.services.transfers import ReadLots
from gateway.common import clock
from gateway.common.errors import NotFound
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import Done, Kind, RequestOutdated
from gateway.staff.models import ApprovalRequest
from sponsors.errors import PaymentWarned, TransferDiffers, TransferEnded, TransferRefused, TransferWaits
from sponsors.models import Sponsor, Transfer, TransferredLot
from users.models import User

_Status = Transfer.Status
# Returns those of the entries whose payments a card network warns of. `payments`, an app above this one, registers it.
_Warned = Callable[[Collection[int]], Collection[int]]
_warned: list[_Warned] = []


def register_warned(warned: _Warned) -> None:
    _warned.append(warned)


def start(*, sponsor: Sponsor, user: User, credits: int, key: str, now: datetime) -> Transfer:
    """
    Move paid credits of a person to a sponsor; above a day's limit, store a transfer that waits for staff.

    A repeated key returns the first transfer in its current state.

    Raises:
        TransferRefused, PaymentWarned: the person has too few paid credits that can be transferred.
        TransferDiffers: the key names another transfer.
        TransferWaits: another transfer of the person to this sponsor waits for staff.
    """
    read = ReadLots(user_id=user.pk)
    with transaction.atomic(durable=True):
        account, to = _lock(user.pk, sponsor.pk)
        known = Transfer.objects.filter(user=user, idempotency_key=key).first()
        if known is not None:
            return _repeated(known, sponsor=sponsor, credits=credits)
        free = _free(account, read, credits)
        row = Transfer(user=user, sponsor=sponsor, idempotency_key=key, credits=credits, created_at=now)
        if _left_today(user=user, sponsor=sponsor, now=now) < credits:
            return _wait(row)
        row.status, row.ended_at = _Status.MOVED, now
        row.save(force_insert=True)
        _move(row, account, to, free)
        return row


def _lock(user_id: int, sponsor_id: int) -> tuple[CreditAccount | None, CreditAccount]:
    own, of_sponsors = ledger.lock(user_id=user_id, sponsor_ids=[sponsor_id])
    return own, of_sponsors[sponsor_id]


def _repeated(known: Transfer, *, sponsor: Sponsor, credits: int) -> Transfer:
    if (known.sponsor_id, known.credits) != (sponsor.pk, credits):
        raise TransferDiffers("The key was used for another transfer. Use a new key.")
    return known


def _free(account: CreditAccount | None, read: ReadLots, credits: int) -> list[tuple[Lot, int]]:
    """
    Return the lots from which `credits` can be moved, with the credits that each has left, oldest first.

    Raises:
        TransferRefused: the lots have fewer credits.
        PaymentWarned: they have enough only with payments of which a card network warns of fraud.
    """
    lots = list(read.read_on().transferable(account.held)) if account else []
    entries = [lot.entry_id for lot, _ in lots]
    warned = {entry for of_app in _warned for entry in of_app(entries)}
    free = [(lot, left) for lot, left in lots if lot.entry_id not in warned]
    available, all_paid = (sum(left for _, left in some) for some in (free, lots))
    if available >= credits:
        return free
    if all_paid >= credits:
        raise PaymentWarned(
            f"You can transfer {available:,} credits now. Of a payment of yours, a card network has warned of fraud; "
            f"its {all_paid - available:,} credits stay on your account.",
            required=credits,
            available=available,
            warned=all_paid - available,
        )
    raise TransferRefused(
        f"You can transfer {available:,} credits: those that you have paid for and that no call holds.",
        required=credits,
        available=available,
    )


def _left_today(*, user: User, sponsor: Sponsor, now: datetime) -> int:
    """Return the credits that the person can still transfer to the sponsor on this UTC day without staff."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = Transfer.objects.filter(status=_Status.MOVED, ended_at__gte=midnight)
    used = [
        sum(today.filter(owner).values_list("credits", flat=True))
        for owner in (Q(user=user), Q(sponsor=sponsor))
    ]
    return settings.SPONSOR_TRANSFER_PER_DAY - max(used)


def _wait(row: Transfer) -> Transfer:
    if Transfer.objects.filter(user=row.user, sponsor=row.sponsor, status=_Status.WAITING).exists():
        raise TransferWaits("A transfer of yours to this sponsor waits for staff already.")
    row.status = _Status.WAITING
    row.save(force_insert=True)
    return row


def _move(
    row: Transfer, account: CreditAccount | None, to: CreditAccount, free: list[tuple[Lot, int]]
) -> None:
    """Post the entries of a transfer from the lots that `_free` returned."""
    assert account is not None  # noqa: S101 - by `_free`
    moved = ledger.move(account=account, to=to, free=free, credits=row.credits, transfer_id=row.pk)
    TransferredLot.objects.bulk_create(
        TransferredLot(
            transfer=row,
            lot_id=lot.lot_entry,
            out_entry_id=lot.out_entry,
            in_entry_id=lot.in_entry,
            credits=lot.credits,
        )
        for lot in moved
    )


def withdraw(*, transfer_id: int, sponsor: Sponsor, user: User, now: datetime) -> None:
    """
    End a waiting transfer of this person; nothing moves. A repeat changes nothing.

    Raises:
        NotFound: the person has made no such transfer to this sponsor.
        TransferEnded: it was moved or refused.
    """
    rows = Transfer.objects.filter(pk=transfer_id, sponsor=sponsor, user=user)
    if not rows.exists():
        raise NotFound("You have made no such transfer.")
    # An approval also locks the row first, so only one of the two finds the transfer waiting.
    rows.filter(status=_Status.WAITING).update(status=_Status.WITHDRAWN, ended_at=now)
    if not rows.filter(status=_Status.WITHDRAWN).exists():
        raise TransferEnded("The transfer was moved or refused before.")


# --- Staff


def request(*, transfer: Transfer, actor: User, reason: str, key: str) -> ApprovalRequest:
    """
    Request that a waiting transfer be moved; a second member of staff decides.

    Raises:
        PermissionDenied, ReasonRequired, RequestConflict: see `approvals.ask`.
    """
    return approvals.ask(
        kind=MOVE,
        actor=actor,
        reason=reason,
        key=key,
        row=transfer,
        person=transfer.user,
        amount=transfer.credits,
        payload={"credits": transfer.credits},
        changes={"credits": ("", str(transfer.credits)), "sponsor": ("", transfer.sponsor.slug)},
    )


def _carry_out(approval: ApprovalRequest) -> Done:
    row = (
        Transfer.objects.select_for_update(of=("self",), no_key=True)
        .select_related("user")
        .get(pk=approval.object_id)
    )
    if row.status != _Status.WAITING or not row.user.is_active:
        raise RequestOutdated("The transfer has ended, or the person has left.")
    read = ReadLots(user_id=row.user_id)
    account, to = _lock(row.user_id, row.sponsor_id)
    free = _free(account, read, row.credits)
    row.status, row.ended_at = _Status.MOVED, clock.now()
    row.save(update_fields=["status", "ended_at"])
    _move(row, account, to, free)
    return Done(f"{row.credits:,} credits were moved.", row)


def refuse(transfer: Transfer, *, now: datetime) -> None:
    """
    End a waiting transfer; nothing moves.

    Raises:
        RequestOutdated: the transfer is not waiting any more.
    """
    if not _waiting().filter(pk=transfer.pk).update(status=_Status.REFUSED, ended_at=now):
        raise RequestOutdated("The transfer has ended.")


def _waiting() -> QuerySet[Transfer]:
    return Transfer.objects.filter(status=_Status.WAITING)


def forget(user: User) -> None:
    """When an account is deleted, refuse its waiting transfers and delete its idempotency keys; keep all amounts."""
    _waiting().filter(user=user).update(status=_Status.REFUSED, ended_at=clock.now())
    Transfer.objects.filter(user=user).update(idempotency_key="")


MOVE = approval_kinds.register(
    Kind(
        name="move_transfer",
        title="Move a transfer to a sponsor",
        asks="sponsors.fund_sponsor",
        decides="credits.decide_adjustment",
        carry_out=_carry_out,
    )
)


# --- Clawbacks


class TransferredPart(NamedTuple):
    """A transferred lot: its sponsor, the entry that opened the sponsor's lot, and the credits not clawed back yet."""

    pk: int
    sponsor_id: int
    in_entry: int
    credits: int


def lock_parts(*, user_id: int, lot_entry: int) -> dict[int, TransferredPart]:
    """
    Return the transferred lots of a payment, oldest first, by id.

    Locks the accounts of the person and the sponsors, so that no transfer moves more of the payment until the
    transaction ends.
    """
    ledger.lock(user_id=user_id, sponsor_ids=[])
    rows = TransferredLot.objects.filter(lot=lot_entry).order_by("pk")
    values = rows.values_list("pk", "transfer__sponsor", "in_entry", F("credits") - F("clawed_back"))
    parts = {pk: TransferredPart(pk, *rest) for pk, *rest in values}
    if parts:
        ledger.lock(user_id=user_id, sponsor_ids=[part.sponsor_id for part in parts.values()])
    return parts


def count_clawback(*, lot: int, credits: int) -> None:
    """
    Count credits as taken back from a transferred lot, or as returned to it if negative.

    Raises:
        IntegrityError: the lot would have more taken back than was moved, or less than nothing.
    """
    TransferredLot.objects.filter(pk=lot).update(clawed_back=F("clawed_back") + credits)


def left_of(*, lot_entry: int) -> int:
    """Return the credits of a payment that sponsors have by transfers, less those clawed back; takes no locks."""
    rows = TransferredLot.objects.filter(lot=lot_entry).values_list("credits", "clawed_back")
    return sum(moved - clawed_back for moved, clawed_back in rows)


# --- Reconciliation

# SQL for the ledger's reconciliation. Each row has: rule, account, row id, expected and actual value.
RULES = """
SELECT 'an entry of a transfer moves a lot from its person to its sponsor', entry.account_id, entry.id,
       coalesce(side.credits, 0), entry.amount
FROM credits_entry AS entry
JOIN credits_account AS account ON account.id = entry.account_id
LEFT JOIN (
    SELECT side.* FROM sponsors_transferredlot AS lot JOIN sponsors_transfer AS transfer ON transfer.id = transfer_id
    CROSS JOIN LATERAL (VALUES
        (out_entry_id, -lot.credits, transfer.user_id, NULL), (in_entry_id, lot.credits, NULL, transfer.sponsor_id)
    ) AS side (entry_id, credits, user_id, sponsor_id)
) AS side ON side.entry_id = entry.id
WHERE source IN ('TRANSFER_OUT', 'TRANSFER_IN')
    AND (side.credits, side.user_id, side.sponsor_id) IS DISTINCT FROM
        (entry.amount, account.user_id, account.sponsor_id)
UNION ALL
SELECT 'a transfer moves the credits of its lots', account.id, transfer.id,
       CASE transfer.status WHEN 'moved' THEN transfer.credits ELSE 0 END, coalesce(sum(lot.credits), 0)
FROM sponsors_transfer AS transfer
JOIN credits_account AS account ON account.sponsor_id = transfer.sponsor_id
LEFT JOIN sponsors_transferredlot AS lot ON lot.transfer_id = transfer.id
GROUP BY account.id, transfer.id
HAVING CASE transfer.status WHEN 'moved' THEN transfer.credits ELSE 0 END <> coalesce(sum(lot.credits), 0)
"""
