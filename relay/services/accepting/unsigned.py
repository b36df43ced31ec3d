"""
Calls that wait for a remote signature, between the transaction that takes their slots and the one that stores them.

The caller has no response yet, so a call may still be withdrawn, but its account nonce must then be given back or
filled.
The web process that took the call, a repeat of the call, or the relay worker may complete it. The signer returns the
same bytes to each of them. The first to store the bytes deletes the row.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import IntegrityError, OperationalError, transaction

from gateway.chain.config import get_chain
from gateway.chain.errors import SignerUnavailable
from gateway.chain.remote_signing import RETRY_AFTER_SECONDS, limit_reached
from gateway.chain.signing import get_signer
from gateway.common import db
from gateway.common.statements import Statements
from relay.errors import RelayNonceTaken
from relay.models import ProfileCreation, UnsignedCall, calldata_of
from relay.services.accepting.calls import SubmittedCall, signed_columns, unhex
from relay.services.accepting.contention import BATCH_MILLISECONDS, locked
from relay.services.accepting.statements import insert_calls
from signer.messages import SigningRequest
from signer.transactions import PolicyViolation, SignedTransaction, UnsignedTransaction
from sponsors.services import holding

logger = logging.getLogger(__name__)
# Only staff change the signer's policy, so a retry within a minute is pointless.
_REFUSED_SECONDS = 60
# Signatures in one request to the signer.
_MOST_TOGETHER = 32
# The relay worker completes calls older than this; until then, the web process that took them is expected to.
_LEFT_BEHIND = timedelta(seconds=5)


class _Sql(Statements, file=__file__):
    keep: str
    take_away: str
    release: str
    give_back: str
    hash_of: str
    waiting: str


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A call with its slot: the row that `relay_insert_calls` stores once it is signed, and its relayer's address."""

    row: dict[str, Any]
    relayer: str

    @property
    def hold_id(self) -> int:
        return int(self.row["hold_id"])

    @property
    def request(self) -> SigningRequest:
        """The request to the signer."""
        row = self.row
        calldata = calldata_of(
            # Rows of an older version do not have this member.
            deploys_profile=row.get("deploys_profile", False),
            signature=unhex(row["signature"]),
            nonce=int(row["relay_nonce"]),
            validity=int(row["validity"]),
            payload=unhex(row["payload"]),
        )
        transaction = UnsignedTransaction(
            chain_id=get_chain().id,
            account_nonce=row["account_nonce"],
            max_priority_fee_per_gas_wei=row["max_priority_fee_per_gas_wei"],
            max_fee_per_gas_wei=row["max_fee_per_gas_wei"],
            gas_limit=row["gas_limit"],
            to=row["key_manager_address"],
            data=calldata,
        )
        return SigningRequest(self.relayer, transaction)


def of_call(call: SubmittedCall) -> Unsigned:
    """Return a call whose slot is taken as one that waits for its signature."""
    return Unsigned(call.columns, str(call.slot.relayer))


def keep(calls: Sequence[Unsigned]) -> None:
    """
    Store calls whose slots this transaction has taken.

    Raises:
        IntegrityError: another call with this relay nonce is waiting (`unsignedcall_relay_nonce`).
    """
    rows = [call.row for call in calls]
    db.all_rows(_Sql.keep, {"chain": get_chain().id, "calls": json.dumps(rows)})


def complete(calls: Sequence[Unsigned]) -> list[str | Exception]:
    """
    Sign and store the calls; return for each its hash or its error.

    A call that the signer refuses is withdrawn. A call without a response stays for a repeat or the sweep.
    """
    try:
        outcomes = get_signer().sign_batch([call.request for call in calls])
    except SignerUnavailable as away:
        return [away] * len(calls)
    signed, refused = [], []
    for call, outcome in zip(calls, outcomes, strict=True):
        if isinstance(outcome, SignedTransaction):
            signed.append((call, outcome))
        elif isinstance(outcome, PolicyViolation):
            refused.append((call, outcome))
    stored = _store(signed)
    # The signer has signed another transaction on this account nonce, so the nonce cannot be given back.
    give_up([call for call, refusal in refused if refusal.refusal == "nonce-used"])
    give_up([call for call, refusal in refused if refusal.refusal != "nonce-used"], give_back=True)
    return [
        stored.get(call.hold_id) or _error(outcome) for call, outcome in zip(calls, outcomes, strict=True)
    ]


def _error(outcome: object) -> Exception:
    if isinstance(outcome, PolicyViolation):
        return _refused(outcome)
    return outcome if isinstance(outcome, Exception) else RuntimeError("a signed call has no outcome")


def _refused(refusal: PolicyViolation) -> Exception:
    if refusal.refusal == "used-up":
        return limit_reached()
    if refusal.refusal == "nonce-used":
        return given_up()
    logger.error("the signer refuses a call: %s", refusal)
    return SignerUnavailable("The signer refuses this call.", retry_after=_REFUSED_SECONDS)


def _store(signed: Sequence[tuple[Unsigned, SignedTransaction]]) -> dict[int, str | Exception]:
    """Store the calls that still wait, in one transaction; return the outcome of each, by the id of its hold."""
    if not signed:
        return {}
    holds = [call.hold_id for call, _ in signed]
    try:
        with transaction.atomic(durable=True):
            db.limit_lock_waits(BATCH_MILLISECONDS)
            waiting = {hold_id for hold_id, *_ in db.all_rows(_Sql.take_away, {"holds": holds})}
            rows = [call.row | signed_columns(outcome) for call, outcome in signed if call.hold_id in waiting]
            insert_calls(rows)
    except (IntegrityError, OperationalError) as error:
        if isinstance(error, OperationalError) and not db.is_lock_timeout(error):
            raise
        if len(signed) > 1:
            return {hold: result for one in signed for hold, result in _store([one]).items()}
        if isinstance(error, OperationalError):
            # The call keeps waiting; a repeat or the sweep stores it.
            return {holds[0]: locked()}
        if db.violated_constraint(error) != "relaytransaction_active_nonce":
            raise
        # Another call with this nonce was stored between two statements of this call's first transaction.
        give_up([signed[0][0]])
        return {holds[0]: RelayNonceTaken(nonce=int(signed[0][0].row["relay_nonce"]))}
    results: dict[int, str | Exception] = {row["hold_id"]: row["transaction_hash"] for row in rows}
    for hold_id in set(holds) - waiting:
        results[hold_id] = hash_of(hold_id) or given_up()
    return results


def hash_of(hold_id: int) -> str | None:
    """Return the hash of the call of this hold, if it is stored."""
    row = db.first_row(_Sql.hash_of, {"hold": hold_id})
    return row[0] if row else None


def given_up() -> SignerUnavailable:
    """Return the error for a call that could not be signed in time; a repeat starts over."""
    return SignerUnavailable(
        "The call could not be signed in time. Retry it.", retry_after=RETRY_AFTER_SECONDS
    )


def finish_repeated(hold_id: int) -> str:
    """
    Return the hash of a call that was submitted before; sign it first where it is still unsigned.

    Raises:
        DomainError: the signer does not respond, or the call could not be signed in time.
    """
    calls = _read(hold_id=hold_id)
    outcome = complete(calls)[0] if calls else hash_of(hold_id) or given_up()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def finish_equal(call: SubmittedCall) -> bool:
    """
    Sign and store the equal call that waits for its signature; return False if none waits.

    Raises:
        DomainError: the signer does not respond, or the call could not be signed in time.
    """
    waiting = UnsignedCall.objects.filter(chain_id=get_chain().id, hold__key=call.hold_key).first()
    if waiting is not None:
        finish_repeated(waiting.hold_id)
    return waiting is not None


def complete_on_nonce_of(call: SubmittedCall) -> None:
    """
    Complete the earlier call that waits for its signature on this call's relay nonce; its caller has no response yet.

    If user and payload are the same, as when a wallet signs again after a 503, `call` becomes a repeat of it. If the
    earlier call is withdrawn or gone, the nonce is free.

    Raises:
        RelayNonceTaken: the earlier call is another one, and is stored now.
        DomainError: the earlier call still waits, for the signer's reason.
    """
    waiting = _read(
        key_manager_address=call.signed.key_manager,
        controller_address=call.identity.controller,
        relay_nonce=call.signed.relay_nonce,
    )
    if not waiting:
        return
    (outcome,) = complete(waiting[:1])
    row = waiting[0].row
    if isinstance(outcome, str):
        if (row["user_id"], unhex(row["payload"])) != (call.caller.user_id, call.signed.payload):
            raise RelayNonceTaken(nonce=call.signed.relay_nonce)
        call.slot = replace(
            call.slot, outcome="repeated", user_id=call.caller.user_id, transaction_hash=outcome
        )
    elif UnsignedCall.objects.filter(hold_id=waiting[0].hold_id).exists():
        raise outcome


def sweep(*, now: datetime) -> int:
    """Complete calls that no process has completed; withdraw those that are too old. Return how many were stored."""
    calls = _read(taken_at__lt=now - _LEFT_BEHIND)
    stored = 0
    for start in range(0, len(calls), _MOST_TOGETHER):
        outcomes = complete(calls[start : start + _MOST_TOGETHER])
        stored += sum(isinstance(outcome, str) for outcome in outcomes)
        if all(isinstance(outcome, SignerUnavailable) for outcome in outcomes):
            break
    give_up(_read(taken_at__lt=now - timedelta(seconds=settings.RELAY_UNSIGNED_SECONDS)))
    return stored


@transaction.atomic(durable=True)
def give_up(calls: Sequence[Unsigned], *, give_back: bool = False) -> None:
    """
    Withdraw calls that wait for their signature: delete their rows and release their holds.

    Set `give_back` only if nothing was signed on their account nonces: each nonce then returns to its relayer, unless
    the relayer has taken a later one. All others remain as gaps, which `gaps` fills by self-transfers.
    """
    if not calls:
        return
    gone = db.all_rows(_Sql.take_away, {"holds": [call.hold_id for call in calls]})
    holds = [hold_id for hold_id, _, _ in gone]
    # A request for a profile that nothing was signed for is as good as never sent.
    ProfileCreation.objects.filter(hold__in=holds).delete()
    db.all_rows(_Sql.release, {"holds": holds, "chain": get_chain().id})
    holding.withdraw(hold_ids=holds)
    if give_back:
        # Relayers in lock order. Of one, the highest nonce first: only the last one taken can be given back.
        for _, relayer_id, account_nonce in sorted(gone, key=lambda slot: (slot[1], -slot[2])):
            db.all_rows(_Sql.give_back, {"relayer": relayer_id, "nonce": account_nonce})


class Waiting(NamedTuple):
    """The number of calls that wait for a signature, and the wait of the oldest in seconds."""

    calls: int
    oldest_seconds: float


def waiting() -> Waiting:
    """Return the calls that wait now."""
    return Waiting(*db.only_row(_Sql.waiting, {"chain": get_chain().id}))


def _read(**chosen: object) -> list[Unsigned]:
    rows = (
        UnsignedCall.objects.filter(chain_id=get_chain().id, **chosen)
        .select_related("relayer")
        .order_by("pk")
    )
    return [Unsigned(row.call, row.relayer.address) for row in rows[:1000]]
