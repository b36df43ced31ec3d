"""A running stack and its wallets, for one trial after the other."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext

from devstack.console import echo_error
from devstack.environment import CREDIT_WEI, CREDITS_PER_MAJOR_UNIT
from devstack.journey.earnings import networks_of
from devstack.stripe_account import StripeAccount
from devstack.wallet import Wallet
from lab.chaos.alerts import Watch
from lab.chaos.faults import Fault, NeverCame
from lab.chaos.income import Income
from lab.chaos.others import slowed
from lab.chaos.probes import health_probe, sign_in_probe
from lab.chaos.results import Row, shared
from lab.chaos.stack import Stack
from lab.chaos.traffic import Traffic
from lab.chaos.verifier import Verifier, drained, in_progress, paid_out, verify_income

_WARM_UP_SECONDS, _COMPARED_SECONDS, _AFTER_SECONDS = 1.5, 10.0, 1.0
_DRAIN_SECONDS = 120
_REPEATED = 5


class Arena:
    """The parts of a trial."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._traffic = Traffic(stack.web.url, stack.services.rpc, stack.profiles)
        self._traffic.sign_in()
        stripe = stack.services.stripe
        networks = networks_of({"networks": stack.networks})
        self._income = Income(self._traffic.wallets, networks, StripeAccount(stripe.url, stripe.secret_key))
        self._health = health_probe(stack.web.url)
        self._sign_in = sign_in_probe(stack.web.url, stack.profiles[0]["profile_address"])
        self._verifier = Verifier(stack.services.rpc, credit_wei=CREDIT_WEI)
        self._invoices_before = 0

    @property
    def wallets(self) -> Sequence[Wallet]:
        """The wallets of the stack, signed in."""
        return self._traffic.wallets

    @property
    def statuses(self) -> Counter[int]:
        """The responses to calls in all trials, by status."""
        return self._traffic.statuses

    @property
    def outages(self) -> Counter[str]:
        """The responses in all trials that were no final response, by code."""
        return self._traffic.outages

    @property
    def refusals(self) -> Counter[str]:
        """The final refusals of calls of the last trial, by status and code."""
        return Counter(call.refusal for call in self._traffic.calls if call.refusal)

    def recent_hash(self, profile_address: str) -> str | None:
        """Return the hash of a profile's newest call; None if it has none."""
        for call in reversed(self._traffic.calls):
            if call.wallet.profile_address == profile_address and call.transaction_hash:
                return call.transaction_hash
        return None

    def try_out(self, faults: Mapping[str, Fault]) -> dict[str, Row]:
        """
        Cause faults one after the other under load, wait for recovery, and return the verifier's result.

        A fault whose trigger point is never reached is skipped.
        """
        since = time.time()
        (validity_seconds,) = {fault.validity_seconds for fault in faults.values()}
        # Faults that share a load have neither.
        first, *_ = faults.values()
        watch = Watch(self._stack.web.url, first.sign) if first.sign else None
        with self._health.running(), self._sign_in.running():
            with self._traffic.running(validity_seconds=validity_seconds), self._income.running():
                time.sleep(_WARM_UP_SECONDS)
                compared_since = time.monotonic()
                time.sleep(0 if first.most_held_up is None else _COMPARED_SECONDS)
                caused_at = time.monotonic()
                with watch.running() if watch else nullcontext():
                    in_flight = self._in_flight_at_each(faults)
                    ended = time.monotonic()
                time.sleep(_AFTER_SECONDS)
            is_drained = drained(self._database, seconds=_DRAIN_SECONDS)
            recovery = time.monotonic() - ended
            self._stack.wait()
        is_paid_out = self._income.until_paid_out(lambda invoices: paid_out(self._database, invoices))
        trial = self._result(since)
        trial.recoveries = [round(recovery, 1)]
        trial.healthz_seconds = round(self._health.longest, 3)
        trial.sign_in_seconds = round(self._sign_in.longest, 3)
        trial.unanswered = len(self._traffic.unanswered)
        if watch and not watch.is_seen:
            trial.wrong.append(f"{watch.sign.alert} would not fire")
        if first.most_held_up is not None:
            others = slowed(self._traffic.calls, since=compared_since, began=caused_at, ended=ended)
            trial.slowed = round(others.factor, 1)
            trial.wrong += others.wrong(most_held_up=first.most_held_up)
        trial.wrong += [f"{trial.unanswered} calls had no response for a minute"] if trial.unanswered else []
        trial.wrong += [] if is_drained else [f"calls are not settled after {_DRAIN_SECONDS} s"]
        trial.wrong += [] if is_paid_out else ["invoices are not paid out"]
        return shared(trial, in_flight)

    def _in_flight_at_each(self, faults: Mapping[str, Fault]) -> dict[str, int]:
        """Cause the faults; return the number of calls in flight at the end of each that happened."""
        in_flight: dict[str, int] = {}
        for name, fault in faults.items():
            if in_flight:
                self._stack.wait_for_all()
            try:
                with fault.caused(self._stack):
                    in_flight[name] = self._in_progress() + len(self._traffic.unanswered)
            except NeverCame as error:
                echo_error(f"  ✗ {error}")
        return in_flight

    def _result(self, since: float) -> Row:
        calls, invoices = list(self._traffic.calls), self._income.paid_invoices()
        self._traffic.repeat([call for call in calls if call.transaction_hash][:_REPEATED])
        result = self._verifier.verify(
            self._database, [call.as_acknowledged() for call in calls], since=since
        )
        postbacks = self._income.postbacks
        verify_income(
            self._database, postbacks, invoices, result, credits_per_major_unit=CREDITS_PER_MAJOR_UNIT
        )
        new_invoices = len(invoices) - self._invoices_before
        self._invoices_before = len(invoices)
        return Row(
            times=1,
            calls=len(calls),
            income=len(postbacks) + new_invoices,
            lost=len(result.lost),
            doubled=len(result.doubled),
            charged_wrongly=len(result.charged_wrongly),
            ledger_difference=result.ledger_difference,
            nonce_gaps=len(result.nonce_gaps),
            longest_hold_seconds=round(result.longest_hold_seconds, 1),
            wrong=result.wrong
            + [f"two hashes for one call: {call.answers}" for call in calls if len(call.answers) > 1],
        )

    def _in_progress(self) -> int:
        return in_progress(self._database)

    @property
    def _database(self) -> str:
        """Its address behind the proxy; it changes with each start."""
        return self._stack.services.database_url
