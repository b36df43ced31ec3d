"""The results of all runs, summed for each fault in a file, and their table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from devstack.console import markdown
from devstack.files import read_json, write_json

_HEAD = (
    "fault",
    "times",
    "in flight",
    "calls",
    "postbacks, payouts",
    "unanswered",
    "lost",
    "doubled",
    "charged wrongly",
    "ledger difference",
    "recovery, longest (median)",
    "longest /healthz",
    "longest sign-in",
    "others slowed",
)
_MOST_KEPT = 20


@dataclass
class Row:
    """One fault: sums and worst values of all its trials."""

    times: int = 0
    in_flight: int = 0
    calls: int = 0
    income: int = 0
    unanswered: int = 0
    lost: int = 0
    doubled: int = 0
    charged_wrongly: int = 0
    ledger_difference: int = 0
    nonce_gaps: int = 0
    longest_hold_seconds: float = 0
    recoveries: list[float] = field(default_factory=list)
    healthz_seconds: float = 0
    sign_in_seconds: float = 0
    # By how much the median call of others was slowed; 0 where that is not measured.
    slowed: float = 0
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, content: dict[str, Any]) -> Self:
        """Return a row from its entry in the file."""
        return cls(**{each.name: content[each.name] for each in fields(cls) if each.name in content})

    @property
    def is_clean(self) -> bool:
        """Whether no trial has found a difference."""
        return not self.wrong

    def add(self, trial: "Row") -> None:
        """Add one more trial."""
        for name in (
            "times",
            "in_flight",
            "calls",
            "income",
            "unanswered",
            "lost",
            "doubled",
            "charged_wrongly",
            "ledger_difference",
            "nonce_gaps",
        ):
            setattr(self, name, getattr(self, name) + getattr(trial, name))
        self.longest_hold_seconds = max(self.longest_hold_seconds, trial.longest_hold_seconds)
        self.healthz_seconds = max(self.healthz_seconds, trial.healthz_seconds)
        self.sign_in_seconds = max(self.sign_in_seconds, trial.sign_in_seconds)
        self.slowed = max(self.slowed, trial.slowed)
        self.recoveries = sorted([*self.recoveries, *trial.recoveries])
        self.wrong = [*self.wrong, *trial.wrong][:_MOST_KEPT]


def shared(trial: Row, in_flight: Mapping[str, int]) -> dict[str, Row]:
    """
    Return a row for each fault of a trial.

    Calls and income are divided between them. The first row has all differences, with the names of all faults.
    """
    names, rows = list(in_flight), {}
    for place, name in enumerate(names):
        row = trial if place == 0 else Row()
        rows[name] = replace(
            row,
            times=1,
            in_flight=in_flight[name],
            calls=_part(trial.calls, place, len(names)),
            income=_part(trial.income, place, len(names)),
            recoveries=trial.recoveries,
            healthz_seconds=trial.healthz_seconds,
            sign_in_seconds=trial.sign_in_seconds,
            longest_hold_seconds=trial.longest_hold_seconds,
        )
    if trial.wrong and len(names) > 1:
        rows[names[0]].wrong = [f"one of {', '.join(names)}:", *trial.wrong]
    return rows


def _part(number: int, place: int, parts: int) -> int:
    return number // parts + (place < number % parts)


class Results:
    """The rows of all faults so far; each trial is saved at once, so a run may be stopped at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows = {name: Row.read(row) for name, row in read_json(path).items()}

    def times(self, fault: str) -> int:
        """Return the number of trials of a fault."""
        return self.rows[fault].times if fault in self.rows else 0

    def add(self, fault: str, trial: Row) -> None:
        """Add a trial and write the file."""
        self.rows.setdefault(fault, Row()).add(trial)
        write_json(self._path, {name: asdict(self.rows[name]) for name in sorted(self.rows)})


def by_action(rows: Mapping[str, Row]) -> dict[str, Row]:
    """Return the rows with all points of an action summed: `kill accept …` becomes one row."""
    points = Counter(_action_of(name) for name in rows)
    added: dict[str, Row] = {}
    for name, row in rows.items():
        action = _action_of(name)
        title = f"kill -9: {action} ({points[action]} points)" if action else name
        added.setdefault(title, Row()).add(row)
    return added


def _action_of(name: str) -> str:
    kill, _, point = name.partition(" ")
    return point.split(" ")[0] if kill == "kill" else ""


def table(rows: Mapping[str, Row]) -> str:
    """Return the rows as a Markdown table."""
    return markdown(_HEAD, (_cells(name, row) for name, row in rows.items()))


def _cells(name: str, row: Row) -> Sequence[object]:
    median = row.recoveries[len(row.recoveries) // 2] if row.recoveries else 0.0
    longest = row.recoveries[-1] if row.recoveries else 0.0
    return [
        name,
        row.times,
        row.in_flight,
        row.calls,
        row.income,
        row.unanswered,
        row.lost,
        row.doubled,
        row.charged_wrongly,
        row.ledger_difference,
        f"{longest:.1f} s ({median:.1f} s)",
        f"{row.healthz_seconds * 1e3:.0f} ms",
        f"{row.sign_in_seconds * 1e3:.0f} ms",
        f"{row.slowed:.1f}×" if row.slowed else "",
    ]
