"""Relay calls of generated people, sent by a relayer that has retired since, in every way that they can end."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from credits.models import CreditHold, EntrySource, HoldStatus
from devstack.population.life import Life
from devstack.world.abi import calldata
from relay.models import Attempt, RelayTransaction
from relay.pricing import cost_in_credits, gas_limit_for
from rewards.rules import cashback_credits

_Status = RelayTransaction.Status
GWEI = 10**9
MAX_FEE_WEI, _TIP_WEI, _SELF_TRANSFER_GAS = 3 * GWEI, GWEI, 21_000
# How a call ends, how likely, and why.
_ENDINGS: tuple[tuple[RelayTransaction.Status, int, str, str], ...] = (
    (_Status.SUCCESS, 88, "", ""),
    (_Status.FAILED, 3, "target-reverted", "The called contract reverts: transfer amount exceeds balance."),
    (_Status.FAILED, 2, "not-authorised", "The controller lacks the permission TRANSFERVALUE."),
    (_Status.FAILED, 1, "relay-nonce-used", "Another call used the nonce first."),
    (_Status.EXPIRED, 2, "relay-call-expired", "Its validity ended before it was sent."),
    (_Status.CANCELLED, 2, "predecessor-failed", "A call before it in its channel failed."),
    (_Status.EXECUTED_EXTERNALLY, 2, "executed-externally", "Somebody else executed it first."),
)
_UNSENT = {_Status.EXPIRED, _Status.CANCELLED}


def call(life: Life, at: datetime) -> None:
    """Hand a relay call in, where the credits suffice; half a minute later it has ended."""
    rng = life.town.rng
    gas, price = rng.randint(60_000, 320_000), rng.randint(GWEI, 2 * GWEI)
    accepted = accept(life, at, gas=gas, price=price)
    if accepted is None:
        return
    status, _, code, detail = rng.choices(_ENDINGS, weights=[ending[1] for ending in _ENDINGS])[0]
    life.relay_nonce += status in RelayTransaction.ACTIVE
    if status == _Status.EXPIRED:
        accepted.row.validity = int(at.timestamp()) + 30
    ended_at = at + timedelta(seconds=rng.randint(14, 70))
    accepted.attempt(Attempt.Kind.CALL, gas, price, at, ended_at, is_last=status not in _UNSENT, ends=status)
    if status in _UNSENT:
        accepted.attempt(
            Attempt.Kind.CANCELLATION, _SELF_TRANSFER_GAS, price, at, ended_at, is_last=True, ends=status
        )
    accepted.row.failure_code, accepted.row.failure_detail = code, detail
    life.plan(ended_at, accepted.ending(status, gas=gas, price=price))


def accept(life: Life, at: datetime, *, gas: int, price: int) -> "Accepted | None":
    """Hold the credits of a call and write it down; None where the account does not afford it."""
    limit = gas_limit_for(estimate=gas)
    amount = cost_in_credits(gas=limit, price_wei=MAX_FEE_WEI, credit_wei=settings.CREDIT_WEI)
    if life.account.available - amount < -life.benefits(at).debt_limit:
        return None
    digest = "0x" + life.town.hexadecimal(32)
    hold = CreditHold(
        id=next(life.town.holds),
        account=life.account,
        key=f"relay:{digest}:{life.controller}:0",
        amount=amount,
        created_at=at,
    )
    life.account.held += amount
    life.holds.append(hold)
    row = _written(life, at, digest, hold, limit)
    row.expected_cost = cost_in_credits(gas=gas, price_wei=price, credit_wei=settings.CREDIT_WEI)
    life.rows.append(row)
    return Accepted(life, row, hold, life.town.next_account_nonce())


def _written(life: Life, at: datetime, digest: str, hold: CreditHold, limit: int) -> RelayTransaction:
    key, value = life.town.rng.randbytes(32), life.town.rng.randbytes(24)
    return RelayTransaction(
        user=life.user,
        profile_address=str(life.user.profile_address),
        key_manager_address=life.key_manager,
        controller_address=life.controller,
        digest=digest,
        channel=0,
        relay_nonce=life.relay_nonce,
        payload=calldata("setData(bytes32,bytes)", key, value),
        signature=life.town.rng.randbytes(65),
        relayer=life.town.relayer,
        hold=hold,
        transaction_hash="",
        gas_limit=limit,
        credits_before=life.account.balance,
        request_id=life.town.hexadecimal(16),
        created_at=at,
    )


@dataclass
class Accepted:
    """A call on its way."""

    life: Life
    row: RelayTransaction
    hold: CreditHold
    account_nonce: int
    sequence: int = 0

    def attempt(
        self,
        kind: Attempt.Kind,
        gas: int,
        price: int,
        at: datetime,
        ended_at: datetime,
        *,
        is_last: bool,
        ends: RelayTransaction.Status,
    ) -> None:
        """Sign a transaction; the last one of a call is mined."""
        town = self.life.town
        fate: dict[str, Any] = {"status": Attempt.Status.WITHDRAWN}
        if is_last:
            fate = {
                "status": Attempt.Status.MINED,
                "block_number": self.account_nonce + 1,
                "block_hash": "0x" + town.hexadecimal(32),
                "succeeded": ends in {_Status.SUCCESS, *_UNSENT},
                "gas_used": gas,
                "effective_gas_price_wei": price,
                "first_sent_at": at + timedelta(seconds=1),
                "sent_at": at + timedelta(seconds=1),
                "mined_at": ended_at - timedelta(seconds=6),
            }
        found = Attempt(
            relay_transaction=self.row,
            relayer=town.relayer,
            account_nonce=self.account_nonce,
            sequence=self.sequence,
            kind=kind,
            transaction_hash="0x" + town.hexadecimal(32),
            raw=town.rng.randbytes(120),
            gas_limit=self.row.gas_limit if kind == Attempt.Kind.CALL else _SELF_TRANSFER_GAS,
            max_fee_per_gas_wei=MAX_FEE_WEI,
            max_priority_fee_per_gas_wei=_TIP_WEI,
            created_at=at,
            **fate,
        )
        self.sequence += 1
        if kind == Attempt.Kind.CALL:
            self.row.transaction_hash = found.transaction_hash
        self.life.rows.append(found)

    def ending(self, status: RelayTransaction.Status, *, gas: int, price: int) -> Any:
        """Return what happens when the chain has confirmed the last attempt."""

        def end(life: Life, at: datetime) -> None:
            self.row.status, self.row.settled_at = status, at
            self.hold.closed_at = at
            life.account.held -= self.hold.amount
            if status in _UNSENT:
                self.hold.status = HoldStatus.RELEASED
            else:
                self._charge(life, at, gas=gas, price=price)

        return end

    def _charge(self, life: Life, at: datetime, *, gas: int, price: int) -> None:
        cost = cost_in_credits(gas=gas, price_wei=price, credit_wei=settings.CREDIT_WEI)
        charge, key = min(cost, self.hold.amount), f"hold:{self.hold.pk}"
        self.row.real_cost = cost
        self.hold.status, self.hold.captured_amount = HoldStatus.CAPTURED, charge
        self.hold.entry = life.post(EntrySource.RELAY_TRANSACTION, -charge, key, at)
        life.gain(charge, f"spent:{key}", EntrySource.RELAY_TRANSACTION, at)
        returned = cashback_credits(cost=charge, fraction=life.benefits(at).cashback_fraction)
        if returned:
            life.post(EntrySource.CREDITS_BACK, returned, f"back:{key}", at)
