"""`python -m lab time-machine`: months of the whole running product, with people, a clerk and banks at random."""

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import stripe

from credit_relay_client import RelayProblem
from devstack.console import echo, step
from devstack.environment import CREDITS_PER_MAJOR_UNIT
from devstack.ports import free_port
from devstack.processes import Beat, Web
from devstack.services.server import Server
from devstack.services.stack import Services, start_services
from devstack.stack_file import described
from devstack.wallet import Wallet
from lab.months.model import Money, read_money
from lab.rehearsals.stack import BLOCK_SECONDS, Rehearsal
from lab.time_machine.clock import TimeMachine
from lab.time_machine.people import PRODUCT, Person
from stripe_double.client import ControlError

_DAY, _STEP_DAYS = 86_400, 5
_PATIENCE_SECONDS, _TOLERATED_SECONDS = 300, 60
_BOOKS = ("reconcile_payments", "reconcile_credits", "reconcile_relay", "audit_ledger")
_WAITING = """
SELECT type, status, attempts, last_error FROM payments_stripeevent
WHERE status <> 'processed' AND next_attempt_at <= now()
"""
_CREDITS = """
SELECT customer.stripe_customer_id, coalesce(sum(entry.amount), 0)
FROM payments_customer AS customer
JOIN credits_account AS account ON account.user_id = customer.user_id
LEFT JOIN credits_entry AS entry
    ON entry.account_id = account.id
    AND entry.source IN ('SUBSCRIBED_PAYOUT', 'CREDIT_PURCHASE', 'PAYOUT_CLAWBACK')
GROUP BY 1
"""


@dataclass(frozen=True)
class Options:
    """How many people (at most 16) and months, the seed of the random acts, and the file for the figures."""

    people: int
    months: int
    seed: int
    results: Path


def run(options: Options) -> int:
    """Play the months and print the figures; return 1 if a comparison fails."""
    random.seed(options.seed)
    with (
        tempfile.TemporaryDirectory(prefix="time-machine-") as name,
        start_services(Path(name), block_time=BLOCK_SECONDS, durable=False) as services,
    ):
        machine = TimeMachine(services, Path(name))
        with step("PostgreSQL and Redis with the machine's clock"):
            machine.preload(services.postgres, services.redis)
        rehearsal = Rehearsal.prepare(services, port=free_port())
        prepared = rehearsal.prepared
        rehearsal.prepared = replace(prepared, settings=prepared.settings | machine.environment)
        web = Web(prepared.directory / "log", rehearsal.prepared.environment, port=prepared.port)
        processes = [web, *rehearsal.workers()]
        with rehearsal.running(processes):
            return Course(options, services, rehearsal, machine, processes).play()


class Course:
    """The people, and what was counted."""

    def __init__(
        self,
        options: Options,
        services: Services,
        rehearsal: Rehearsal,
        machine: TimeMachine,
        processes: Sequence[Server],
    ) -> None:
        self.options, self.services, self.rehearsal, self.machine = options, services, rehearsal, machine
        self.processes, self.sent = processes, 0
        url = rehearsal.prepared.settings["PUBLIC_URL"]
        profiles = described(rehearsal.prepared.profiles)[: options.people]
        self.people = [Person(Wallet.of(profile, url, services.rpc), services.stripe) for profile in profiles]
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def play(self) -> int:
        """Let the months pass, with a comparison after each."""
        began, began_at = time.monotonic(), self.machine.now
        with step(f"{len(self.people)} people subscribe"):
            for person in self.people:
                person.begin()
        for month in range(self.options.months):
            for _ in range(30 // _STEP_DAYS):
                for person in self.people:
                    self._act(person)
                self.machine.move(_STEP_DAYS * _DAY)
                self._settle()
            self._compare_clocks()
            self._compare_processes()
            self._compare()
            echo(f"  month {month + 1}: {time.monotonic() - began:.0f} s, {len(self.wrong)} wrong")
        figures = {
            "seed": self.options.seed,
            "people": len(self.people),
            "days": (self.machine.now - began_at) // _DAY,
            "seconds": round(time.monotonic() - began),
            "tasks sent by beat": self.sent,
            "acts": dict(self.counts),
            "wrong": self.wrong,
            **self._money(),
        }
        self.options.results.parent.mkdir(parents=True, exist_ok=True)
        self.options.results.write_text(json.dumps(figures, indent=1) + "\n")
        echo(json.dumps(figures, indent=1))
        return int(bool(self.wrong))

    def _act(self, person: Person) -> None:
        acts: list[Callable[[], object]] = person.acts()
        act = random.choice(acts)  # noqa: S311
        try:
            act()
        except (RelayProblem, stripe.StripeError, ControlError, IndexError) as error:
            self.counts[f"{act.__name__}: {getattr(error, 'code', None) or type(error).__name__}"] += 1
        else:
            self.counts[act.__name__] += 1

    def _settle(self) -> None:
        """Wait until every webhook was sent and processed."""
        self.services.stripe.controls.settle(timeout=_PATIENCE_SECONDS)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while waiting := self._query(_WAITING):
            if time.monotonic() > deadline:
                raise RuntimeError(f"Events are not processed: {waiting[:5]}")
            time.sleep(0.2)

    def _compare_clocks(self) -> None:
        """Compare the clocks that can be read; the web processes accept webhooks of no other time."""
        block = self.services.node.rpc.call("eth_getBlockByNumber", "latest", False)
        clocks = {
            "database": int(self._query("SELECT extract(epoch FROM now())")[0][0]),
            "chain": int(block["timestamp"], 16),
            "stripe": self.services.stripe.controls.now,
        }
        self.wrong += [
            f"{name} is {at - self.machine.now} s ahead"
            for name, at in clocks.items()
            if abs(at - self.machine.now) > _TOLERATED_SECONDS
        ]

    def _compare_processes(self) -> None:
        """Find processes that have ended, and a beat that has sent no task since the last month."""
        self.wrong += [f"{process.name} has ended" for process in self.processes if process.has_ended]
        logs = [process.log_path for process in self.processes if isinstance(process, Beat)]
        sent = sum(path.read_text(errors="replace").count("task_enqueued") for path in logs)
        if sent <= self.sent:
            self.wrong.append("beat sends no task")
        self.sent = sent

    def _compare(self) -> None:
        """Run the product's own comparisons, and compare each person's credits with the reference."""
        for name in _BOOKS:
            status, output = self.rehearsal.manage(name)
            if status:
                self.wrong.append(f"{name}: {output[-400:]}")
        if self._differences():
            self._settle()  # Automatic top-up may have bought in between.
            self.wrong += self._differences()

    def _differences(self) -> list[str]:
        due: Counter[str] = Counter()
        for money in self._books().values():
            due[money.customer] += money.credits(CREDITS_PER_MAJOR_UNIT, {})
        have = dict(self._query(_CREDITS))
        return [
            f"{customer}: {have.get(customer)} credits, {wanted} are due"
            for customer, wanted in due.items()
            if have.get(customer) != wanted
        ]

    def _books(self) -> dict[str, Money]:
        return read_money(self.services.stripe.directory, product=PRODUCT)

    def _money(self) -> dict[str, int]:
        books = self._books().values()
        return {
            "invoices": len(books),
            "collected": sum(money.collected for money in books),
            "returned": sum(money.returned for money in books),
            "credits": sum(int(total) for _, total in self._query(_CREDITS)),
        }

    def _query(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.services.database_url) as connection:
            return list(connection.execute(statement).fetchall())
