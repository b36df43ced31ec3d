"""
A service where all is well, and one fault for each alert: rows, settings and parts as they are while the fault lasts.

`FAULTS` has a function for each alert. Alerts that come with it name themselves in `also`.
"""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
from celery import states
from django.conf import settings
from django.utils import timezone

import relay.metrics
from credits.models import EntrySource, ReconciliationRun, UnbackedCeiling, UnbackedDay
from credits.services import entries
from earnings.models import AdNetwork, DailyEarnings, Postback
from gateway.chain.client import get_chain_client
from gateway.chain.types import NodeHealth
from gateway.common import metrics, tasks
from gateway.common.redis_urls import text_client
from gateway.staff.models import ApprovalRequest
from gateway.staff.pauses import switch
from payments.models import BillingOperation, Payout
from proofs.models import LedgerRoot
from relay.models import (
    Attempt,
    CreditPrice,
    FinalBlock,
    GapFiller,
    LeastTip,
    Loss,
    Relayer,
    RelayTransaction,
    ReversedSettlement,
    TopUp,
    Treasury,
    UnsignedCall,
    WorkerLoop,
)
from relay.queries.prices import PriceState
from relay.rules import PriceUse
from tests.credits.holding import place_hold
from tests.database import as_owner, tamper
from tests.earnings.ad_networks import new_reward, set_up
from tests.factories import UserFactory, make
from tests.gateway.metrics.test_figures import ago, attempt, calls, run_of, stripe_event
from users.models import AccountDeletion
from webhooks.models import Endpoint, Message

_TASK = "payments.process_due_events"
Status = RelayTransaction.Status


Cause = Callable[[pytest.MonkeyPatch], object]


@dataclass(frozen=True)
class Fault:
    """How a fault is caused, for which alert, and all that fire while it lasts."""

    alert: str
    cause: Cause
    alerts: frozenset[str]


FAULTS: list[Fault] = []
NODES = [NodeHealth(name, "", 3.0) for name in ("one", "two")]


def fault(alert: str, *also: str) -> Callable[[Cause], object]:
    """Decorator: this function causes the fault that the alert is for."""

    def add(cause: Cause) -> object:
        FAULTS.append(Fault(alert, cause, frozenset({alert, *also})))
        return cause

    return add


def make_healthy(patch: pytest.MonkeyPatch) -> None:
    """Make the rows of a service that works."""
    patch.setattr(settings, "STRIPE_SECRET_KEY", "sk_test_something")
    nodes_are(patch, NODES)
    for _ in range(2):
        make(
            Relayer,
            next_account_nonce=101,
            mined_account_nonce=100,
            balance_wei=10**18,
            synced_at=timezone.now(),
        )
    make(Treasury, balance_wei=10**20)
    for name in ("broadcasting", "tracking"):
        WorkerLoop.objects.create(
            name=name, ended_at=timezone.now(), succeeded_at=timezone.now(), moved_at=ago(500)
        )
    for kind in ("ledger", "causes", "roots", "chain", "stripe"):
        run_of(kind, age=3600, findings=0)
    all_tasks_ended()
    make(LedgerRoot, closed_at=ago(60))
    answered(60, 0.05, "accepted")
    set_up("bitlabs")
    call(Status.SUCCESS, count=25)


def nodes_are(patch: pytest.MonkeyPatch, nodes: list[NodeHealth]) -> None:
    patch.setattr(get_chain_client(), "nodes", lambda: nodes)


def all_tasks_ended() -> None:
    """Let each periodic task end well just now."""
    for task in tasks.scheduled_tasks():
        tasks.record_heartbeat(task=task, state=states.SUCCESS)


def call(status: Status, *, count: int = 1, age: float = 30) -> RelayTransaction:
    """Make calls, whose relayers are retired, and return one of them."""
    is_open = status in RelayTransaction.IN_PROGRESS
    made = calls(count, status=status, created_at=ago(age), settled_at=None if is_open else ago(1))
    Relayer.objects.filter(synced_at=None).update(is_active=False, retired_at=timezone.now())
    return made[0]


@fault("GatewayCallsNotSent")
def _(patch: pytest.MonkeyPatch) -> None:
    attempt(call(Status.PENDING, age=300), age=300, node_message="connection refused")


@fault("GatewayCallsNotMined")
def _(patch: pytest.MonkeyPatch) -> None:
    attempt(call(Status.SUBMITTED, age=900), age=900, status="sent", first_sent_at=ago(900))


@fault("GatewayCallsNotSettled")
def _(patch: pytest.MonkeyPatch) -> None:
    call(Status.PENDING, age=2000)


@fault("GatewayChainNotRead")
def _(patch: pytest.MonkeyPatch) -> None:
    Relayer.objects.update(synced_at=ago(300))


def _nothing_is_sent() -> None:
    """Have both loops fail for long, with calls that wait at each step, and others refused."""
    attempt(call(Status.PENDING, age=2000), age=2000)
    _nothing_is_tracked()


def _nothing_is_tracked() -> None:
    WorkerLoop.objects.update(succeeded_at=ago(300), moved_at=ago(3000))
    Relayer.objects.update(synced_at=ago(300))
    attempt(call(Status.SUBMITTED, age=2000), age=2000, status="sent", first_sent_at=ago(2000))
    _one_relayer(next_account_nonce=116)
    answered(20, 0.9, "unavailable")


@fault("GatewayNodesTooFew")
def _(patch: pytest.MonkeyPatch) -> None:
    nodes_are(patch, [replace(node, fault="no response") for node in NODES])
    _nothing_is_sent()


@fault("GatewayNodeUnfit")
def _(patch: pytest.MonkeyPatch) -> None:
    nodes_are(patch, [replace(NODES[0], fault="lags"), NODES[1]])


@fault("GatewayNodeAnswersWrongly")
def _(patch: pytest.MonkeyPatch) -> None:
    metrics.CHAIN_WRONG_ANSWERS.add("one", "eth_call")
    metrics.Reporter().report()


@fault("GatewayNoRelayer")
def _(patch: pytest.MonkeyPatch) -> None:
    Relayer.objects.update(is_active=False)


@fault("GatewayRelayerPoor")
def _(patch: pytest.MonkeyPatch) -> None:
    _one_relayer(balance_wei=10**15)


@fault("GatewayRelayersEmpty")
def _(patch: pytest.MonkeyPatch) -> None:
    Relayer.objects.update(balance_wei=10**13)
    Treasury.objects.update(balance_wei=0)
    answered(20, 0.9, "unavailable")


@fault("GatewayRelayerQuarantined")
def _(patch: pytest.MonkeyPatch) -> None:
    _one_relayer(quarantined_at=timezone.now(), is_active=False)


@fault("GatewayRelayerHasCode")
def _(patch: pytest.MonkeyPatch) -> None:
    _one_relayer(has_code=True, quarantined_at=timezone.now(), is_active=False)


@fault("GatewayRelayerLeftPaused")
def _(patch: pytest.MonkeyPatch) -> None:
    _one_relayer(is_active=False)


@fault("GatewayRelayerFull")
def _(patch: pytest.MonkeyPatch) -> None:
    _one_relayer(next_account_nonce=116)


def _one_relayer(**values: object) -> None:
    Relayer.objects.filter(pk=Relayer.objects.filter(retired_at=None).earliest("pk").pk).update(**values)


@fault("GatewayTreasuryPoor")
def _(patch: pytest.MonkeyPatch) -> None:
    Treasury.objects.update(balance_wei=10**17)


@fault("GatewayTopUpStuck")
def _(patch: pytest.MonkeyPatch) -> None:
    make(
        TopUp,
        relayer=Relayer.objects.earliest("pk"),
        treasury_address=Treasury.objects.get().address,
        created_at=ago(1000),
    )


def _lost(percent: int) -> None:
    limit = settings.RELAY_LOSS_PER_HOUR_WEI
    make(Loss, kind="gap", reserved_wei=limit * percent // 100, reserved_at=ago(60))


@fault("GatewayLossLimitNear")
def _(patch: pytest.MonkeyPatch) -> None:
    _lost(60)


@fault("GatewayLossLimitReached")
def _(patch: pytest.MonkeyPatch) -> None:
    _lost(80)


def _price_has_used(patch: pytest.MonkeyPatch, age: str, margin: str) -> None:
    use = PriceUse(age_share=Fraction(age), margin_share=Fraction(margin))
    states = {8453: PriceState(CreditPrice.objects.get(), use)}
    patch.setattr(relay.metrics, "price_states", lambda: states)


@fault("GatewayPriceOutdated")
def _(patch: pytest.MonkeyPatch) -> None:
    _price_has_used(patch, "0.2", "1.01")


@fault("GatewayPriceEnds")
def _(patch: pytest.MonkeyPatch) -> None:
    _price_has_used(patch, "0.9", "0.3")


@fault("GatewayTipRequired")
def _(patch: pytest.MonkeyPatch) -> None:
    attempt(call(Status.SUCCESS), age=60, status="withdrawn")
    refused = Attempt.objects.latest("pk")
    make(LeastTip, chain_id=settings.CHAIN_ID, tip_wei=3 * 10**9, attempt=refused, confirmed_at=ago(30))


@fault("GatewayFinalBlockReplaced")
def _(patch: pytest.MonkeyPatch) -> None:
    FinalBlock.objects.create(number=7, block_hash="0x1", replaced_at=ago(1))
    _nothing_is_tracked()


@fault("GatewaySettlementsReversed")
def _(patch: pytest.MonkeyPatch) -> None:
    make(ReversedSettlement, relay_transaction=call(Status.SUCCESS), settled_at=ago(9), reversed_at=ago(5))


@fault("GatewayGapFilled")
def _(patch: pytest.MonkeyPatch) -> None:
    make(GapFiller, relayer=Relayer.objects.earliest("pk"), account_nonce=1, created_at=ago(5))


class _Away:
    """A signer that does not respond."""

    def responds(self) -> bool:
        return False


@fault("GatewaySignerAway")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settings, "RELAY_SIGNER", "remote")
    patch.setattr(relay.metrics, "remote_signer", _Away)
    _unsigned()
    answered(20, 0.9, "unavailable")


@fault("GatewayCallsUnsigned")
def _(patch: pytest.MonkeyPatch) -> None:
    _unsigned()


def _unsigned() -> None:
    make(
        UnsignedCall,
        relayer=Relayer.objects.earliest("pk"),
        account_nonce=1,
        hold_id=_hold(age=60),
        taken_at=ago(60),
    )


@fault("GatewayCallsFail")
def _(patch: pytest.MonkeyPatch) -> None:
    call(Status.FAILED, count=10)


@fault("GatewayCallsTurnedAway")
def _(patch: pytest.MonkeyPatch) -> None:
    answered(60, 0.01, "accepted")
    answered(20, 0.9, "unavailable")


@fault("GatewayCallsAnsweredSlowly")
def _(patch: pytest.MonkeyPatch) -> None:
    answered(60, 4.0, "accepted")


def answered(count: int, seconds: float, outcome: str) -> None:
    """Count calls; a test of rules takes each sample of a histogram as what happened in one minute."""
    for _ in range(count):
        metrics.ACCEPTANCE.observe(seconds, outcome)
    metrics.Reporter().report()


@fault("GatewayAway")
def _(patch: pytest.MonkeyPatch) -> None:
    """Have the test scrape nothing."""


@fault("GatewayFunctionsDiffer")
def _(_patch: pytest.MonkeyPatch) -> None:
    as_owner("ALTER FUNCTION relay_reserve_loss COST 1000")


@fault("GatewayRedisAway")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:1/0")
    _no_task_runs()


def _no_task_runs() -> None:
    """Have work wait that only tasks do."""
    tamper("UPDATE credits_root SET closed_at = closed_at - interval '2 hours'")
    stripe_event("received", age=1000)
    make(BillingOperation, created_at=ago(1000))
    make(AccountDeletion, requested_at=ago(1000))
    _message(next_attempt_at=ago(700))


@fault("GatewayDatabaseReadOnly")
def _(_patch: pytest.MonkeyPatch) -> None:
    _nothing_is_sent()
    WorkerLoop.objects.update(ended_at=ago(300))
    _database_errors(metrics.READ_ONLY)
    as_owner("SET LOCAL transaction_read_only = on")


@fault("GatewayDatabaseDiskFull")
def _(_patch: pytest.MonkeyPatch) -> None:
    _database_errors(metrics.DISK_FULL)


@fault("GatewayRowLocked")
def _(_patch: pytest.MonkeyPatch) -> None:
    _database_errors(metrics.LOCK_TIMEOUT)


@fault("GatewaySessionsLost")
def _(_patch: pytest.MonkeyPatch) -> None:
    _database_errors(metrics.SESSION_LOST)


@fault("GatewaySessionsReadOnly")
def _(_patch: pytest.MonkeyPatch) -> None:
    _database_errors(metrics.READ_ONLY)


def _database_errors(error: str) -> None:
    for _ in range(30):
        metrics.DATABASE_ERRORS.add(error)
    metrics.Reporter().report()


@fault("GatewayClockSkew")
def _(_patch: pytest.MonkeyPatch) -> None:
    redis().hset("gateway:clocks", "a-host", json.dumps([-7.5, timezone.now().timestamp()]))


@fault("GatewayRelayWorkerStopped")
def _(patch: pytest.MonkeyPatch) -> None:
    _nothing_is_sent()
    WorkerLoop.objects.update(ended_at=ago(300))


@fault("GatewayRelayWorkerFails")
def _(patch: pytest.MonkeyPatch) -> None:
    _nothing_is_sent()


@fault("GatewayRelayWorkerStalled")
def _(patch: pytest.MonkeyPatch) -> None:
    attempt(call(Status.PENDING, age=400), age=400)


@fault("GatewayLogLinesDropped")
def _(_patch: pytest.MonkeyPatch) -> None:
    metrics.LOG_LINES_DROPPED.add()
    metrics.Reporter().report()


def _task(*, ended: float, succeeded: float) -> None:
    now = timezone.now().timestamp()
    times = {f"ended {_TASK}": now - ended, f"succeeded {_TASK}": now - succeeded}
    redis().hset(tasks._HEARTBEATS_KEY, mapping=times)


def redis() -> Any:
    return text_client(settings.REDIS_URL)


@fault("GatewayTaskLate")
def _(patch: pytest.MonkeyPatch) -> None:
    _task(ended=2000, succeeded=2000)
    _no_task_runs()


@fault("GatewayTaskFails")
def _(patch: pytest.MonkeyPatch) -> None:
    _task(ended=1, succeeded=1000)


@fault("GatewayTaskNeverRan")
def _(patch: pytest.MonkeyPatch) -> None:
    redis().hdel(tasks._HEARTBEATS_KEY, f"ended {_TASK}", f"succeeded {_TASK}")


@fault("GatewayLedgerDiffers")
def _(patch: pytest.MonkeyPatch) -> None:
    run_of("ledger", age=60, findings=1)


@fault("GatewayCausesDiffer")
def _(patch: pytest.MonkeyPatch) -> None:
    run_of("causes", age=60, findings=1)


@fault("GatewayRootsDiffer")
def _(patch: pytest.MonkeyPatch) -> None:
    run_of("roots", age=60, findings=1)


@fault("GatewayChainDiffers")
def _(patch: pytest.MonkeyPatch) -> None:
    run_of("chain", age=60, findings=1)


@fault("GatewayStripeDiffers")
def _(patch: pytest.MonkeyPatch) -> None:
    run_of("stripe", age=60, findings=1)


@fault("GatewayComparisonMissing")
def _(patch: pytest.MonkeyPatch) -> None:
    ReconciliationRun.objects.filter(kind="chain").update(started_at=ago(180_000), finished_at=ago(170_000))


@fault("GatewayRootLate")
def _(patch: pytest.MonkeyPatch) -> None:
    tamper("UPDATE credits_root SET closed_at = closed_at - interval '2 hours'")


@fault("GatewayHoldLeftOpen")
def _(patch: pytest.MonkeyPatch) -> None:
    _hold(age=4000)


def _hold(*, age: float) -> int:
    user = UserFactory.create()
    entries.grant(user=user, credits=1, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    hold_id = place_hold(user=user, credits=1, key=secrets.token_hex(8)).hold.pk
    tamper(f"UPDATE credits_hold SET created_at = created_at - {age} * interval '1 second'")  # noqa: S608 - a number
    return int(hold_id)


@fault("GatewayApprovalWaits")
def _(patch: pytest.MonkeyPatch) -> None:
    make(ApprovalRequest, needs_second_person=True, created_at=ago(90_000), expires_at=ago(-90_000))


@fault("GatewayStripeEventsFailed")
def _(patch: pytest.MonkeyPatch) -> None:
    stripe_event("failed", age=1000)


@fault("GatewayStripeEventsWait")
def _(patch: pytest.MonkeyPatch) -> None:
    stripe_event("received", age=1000)


@fault("GatewayPaymentFraudWarning")
def _(patch: pytest.MonkeyPatch) -> None:
    Payout.objects.filter(pk=make(Payout).pk).update(fraud_warned_at=ago(60))


@fault("GatewayBillingOperationUnfinished")
def _(patch: pytest.MonkeyPatch) -> None:
    make(BillingOperation, created_at=ago(1000))


@fault("GatewayAccountDeletionLate")
def _(patch: pytest.MonkeyPatch) -> None:
    make(AccountDeletion, requested_at=ago(1000))


@fault("GatewayAccountErasureLate")
def _(patch: pytest.MonkeyPatch) -> None:
    make(AccountDeletion, status="billing-ended", requested_at=ago(98_000), billing_ended_at=ago(9000))


@fault("GatewayEarningsLate")
def _(patch: pytest.MonkeyPatch) -> None:
    network = set_up("theoremreach", hold_hours=5)
    network.send(network.reward(UserFactory.create()))
    Postback.objects.update(available_at=ago(1000))


@fault("GatewayEarningsBeyondCap")
def _(patch: pytest.MonkeyPatch) -> None:
    network = set_up("theoremreach", per_event_cap=1)
    network.send(network.reward(UserFactory.create(), amount="2"))


@fault("GatewayEarningsNearCeiling")
def _(patch: pytest.MonkeyPatch) -> None:
    DailyEarnings.objects.create(
        day=timezone.now().date(), scope="", credits=settings.EARNINGS_DAILY_CEILING * 9 // 10
    )


@fault("GatewayUnbackedNearCeiling")
def _(patch: pytest.MonkeyPatch) -> None:
    ceiling = UnbackedCeiling.objects.create(credits=100)
    UnbackedDay.objects.create(day=timezone.now().date(), debt=ceiling.credits - 9)


@fault("GatewayEarningsOfNobody")
def _(patch: pytest.MonkeyPatch) -> None:
    set_up("theoremreach").send(new_reward(at=timezone.now()))


@fault("GatewayReversalsUnmatched")
def _(patch: pytest.MonkeyPatch) -> None:
    network = set_up("theoremreach")
    network.send(network.reward(UserFactory.create(), is_reversal=True))
    Postback.objects.update(received_at=ago(90_000))


@fault("GatewayPostbacksConflict")
def _(patch: pytest.MonkeyPatch) -> None:
    network, user = set_up("theoremreach"), UserFactory.create()
    reward = network.reward(user, amount="7")
    network.send(reward)
    network.send(replace(reward, amount="8"))


def _endpoint(**values: object) -> Endpoint:
    return make(Endpoint, **values)


def _message(**values: object) -> None:
    make(Message, endpoint=_endpoint(), type="webhook.test", **values)


@fault("GatewayWebhooksLate")
def _(patch: pytest.MonkeyPatch) -> None:
    _message(next_attempt_at=ago(700))


@fault("GatewayWebhookEndpointDisabled")
def _(patch: pytest.MonkeyPatch) -> None:
    _endpoint(disabled_at=ago(9), disabled_by="gone")


@fault("GatewayWebhooksGivenUp")
def _(patch: pytest.MonkeyPatch) -> None:
    _message(status="given-up", finished_at=ago(9))


def _pause(name: str) -> None:
    actor = UserFactory.create(profile_address=None, is_staff=True)
    switch(name, is_paused=True, reason="a test", actor=actor)


@fault("GatewayRelayPaused")
def _(patch: pytest.MonkeyPatch) -> None:
    _pause("relay")
    answered(20, 0.9, "unavailable")


@fault("GatewayCheckInsPaused")
def _(patch: pytest.MonkeyPatch) -> None:
    _pause("check_ins")


@fault("GatewayAdNetworkPaused")
def _(patch: pytest.MonkeyPatch) -> None:
    AdNetwork.objects.update(is_enabled=False)
