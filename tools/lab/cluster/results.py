"""The results of a cluster's trials by fault, in a file, and their table."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from devstack.console import markdown
from devstack.files import read_json, write_json

_HEAD = (
    "fault",
    "times",
    "calls",
    "accepted",
    "calls per second",
    "unanswered",
    "lost",
    "account nonces reused",
    "doubled",
    "ledger difference",
    "no call accepted for (median)",
    "sign-in refused for",
    "workers at work after",
    "settled after, longest (median)",
)
_MOST_KEPT = 8


@dataclass
class Trial:
    """One fault; the load starts before it and ends after it."""

    began: str
    calls: int = 0
    accepted: int = 0
    calls_per_second: float = 0.0
    unanswered: int = 0
    lost: int = 0
    nonces_reused: int = 0
    doubled: int = 0
    charged_wrongly: int = 0
    ledger_difference: int = 0
    nonce_gaps: int = 0
    silence_seconds: float = 0.0
    """The longest time without an accepted call, among clients of HAProxy."""
    sign_in_seconds: float = 0.0
    """The longest wait for a response other than 5xx."""
    workers_seconds: float = 0.0
    """Seconds from the end of the fault until every loop and frequent task has succeeded again."""
    settled_seconds: float = 0.0
    """Seconds from the end of the fault until every call was settled."""
    wrong: list[str] = field(default_factory=list)

    def shortened(self) -> "Trial":
        """Return it with at most a few differences as text; the numbers stay."""
        self.wrong = self.wrong[:_MOST_KEPT]
        return self


class Results:
    """The trials of all faults so far; each is saved at once, so a run may be stopped at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.trials = {name: [Trial(**trial) for trial in trials] for name, trials in read_json(path).items()}

    def times(self, fault: str) -> int:
        """Return the number of trials of a fault."""
        return len(self.trials.get(fault, []))

    def add(self, fault: str, trial: Trial) -> None:
        """Add a trial and write the file."""
        self.trials.setdefault(fault, []).append(trial.shortened())
        content = {name: [asdict(each) for each in self.trials[name]] for name in sorted(self.trials)}
        write_json(self._path, content)

    def table(self, faults: Sequence[str]) -> str:
        """Return the faults that were tried, as a Markdown table."""
        return markdown(_HEAD, (_cells(name, self.trials[name]) for name in faults if name in self.trials))


def _cells(name: str, trials: Sequence[Trial]) -> Sequence[object]:
    silences = sorted(trial.silence_seconds for trial in trials)
    settled = sorted(trial.settled_seconds for trial in trials)
    rate = sum(trial.calls_per_second for trial in trials) / len(trials)
    workers = max(trial.workers_seconds for trial in trials)
    return [
        name,
        len(trials),
        sum(trial.calls for trial in trials),
        sum(trial.accepted for trial in trials),
        f"{rate:.0f}",
        sum(trial.unanswered for trial in trials),
        sum(trial.lost for trial in trials),
        sum(trial.nonces_reused for trial in trials),
        sum(trial.doubled for trial in trials),
        sum(trial.ledger_difference for trial in trials),
        _longest(silences),
        f"{max(trial.sign_in_seconds for trial in trials):.1f} s",
        f"{workers:.0f} s" if workers else "not measured",
        _longest(settled),
    ]


def _longest(seconds: Sequence[float]) -> str:
    return f"{seconds[-1]:.1f} s ({median(seconds):.1f} s)"
