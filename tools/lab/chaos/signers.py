"""
`python -m lab signers`: calls with each place of the keys, while the signing process is killed and stalled.

With local keys, a web process signs; otherwise the signer or the key service behind it. One stall exceeds the timeout
of a signing request, another one the maximum time that a call waits for its signature.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import psutil

from devstack.console import echo, markdown
from devstack.environment import CREDIT_WEI, overriding
from devstack.files import read_json, write_json
from devstack.services.server import wait_until
from devstack.signing import KeyPlace
from lab.chaos.journals import JournalResult, compare_journal, read_journal
from lab.chaos.probes import health_probe, sign_in_probe
from lab.chaos.stack import START_SECONDS, Stack, running_stack
from lab.chaos.traffic import Call, Traffic
from lab.chaos.verifier import Result, Verifier, drained

# A call's maximum wait for its signature, and the timeout of a signing request.
_UNSIGNED_SECONDS, _TIMEOUT_SECONDS = 15, 5
_STALLED_SECONDS, _AWAY_SECONDS = _TIMEOUT_SECONDS + 3, _UNSIGNED_SECONDS + 10
_SETTLED_SECONDS = 120
_MOST_SHOWN = 10
# The first calls open connections and load modules.
_WARM_CALLS = 20
_TITLES = {
    KeyPlace.LOCAL: "in web and relay worker",
    KeyPlace.KEYSTORE: "signer, encrypted keystore",
    KeyPlace.PKCS11: "signer, PKCS#11 (SoftHSM)",
    KeyPlace.KMS: "signer, AWS KMS (stub)",
}


@dataclass(frozen=True)
class Options:
    """The places of the keys, the calls for each, and the file of the figures."""

    places: Sequence[KeyPlace]
    calls: int
    results: Path


@dataclass
class Trial:
    """The results of the calls with one place of the keys."""

    calls: int = 0
    accepted: int = 0
    settled_once: int = 0
    lost: int = 0
    doubled: int = 0
    charged_wrongly: int = 0
    ledger_difference: int = 0
    account_nonces_left_out: int = 0
    journal: JournalResult | None = None
    faults: list[str] = field(default_factory=list)
    # Of requests before the first fault.
    accept_ms: float = 0.0
    longest_response_seconds: float = 0.0
    healthz_seconds: float = 0.0
    sign_in_seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


def run(options: Options) -> int:
    """Try each place; return 1 if there was a difference."""
    trials: dict[str, Trial] = {}
    for place in options.places:
        echo(f"Keys {_TITLES[place]}: {options.calls} calls")
        with tempfile.TemporaryDirectory(prefix="signers-") as folder:
            trials[place] = _tried(place, options.calls, Path(folder))
        for line in trials[place].wrong[:_MOST_SHOWN]:
            echo(f"  ✗ {line}")
        write_json(options.results, read_json(options.results) | {place: asdict(trials[place])})
    echo(table(trials))
    return int(any(trial.wrong for trial in trials.values()))


def _tried(place: KeyPlace, calls: int, folder: Path) -> Trial:
    settings = overriding(RELAY_UNSIGNED_SECONDS=_UNSIGNED_SECONDS, SIGNER_TIMEOUT_SECONDS=_TIMEOUT_SECONDS)
    with running_stack(folder, keys=place, settings=settings) as stack:
        verifier = Verifier(stack.services.rpc, credit_wei=CREDIT_WEI)
        trial = _trial(stack, verifier, calls)
    if stack.journal is not None:
        trial.journal = compare_journal(read_journal(stack.journal), verifier.chain)
        trial.wrong += trial.journal.wrong
    return trial


def _trial(stack: Stack, verifier: Verifier, number: int) -> Trial:
    traffic = Traffic(stack.web.url, stack.services.rpc, stack.profiles)
    traffic.sign_in()
    health = health_probe(stack.web.url)
    sign_in = sign_in_probe(stack.web.url, stack.profiles[0]["profile_address"])
    since, faults = time.time(), _faults(stack)
    with health.running(), sign_in.running():
        with traffic.running():
            first_fault_at = _cause(faults, traffic, number)
        is_drained = drained(stack.services.database_url, seconds=_SETTLED_SECONDS)
    calls = list(traffic.calls)
    result = _result(stack, verifier, calls, since)
    accepted = [call for call in calls if call.transaction_hash]
    quiet = [call.seconds for call in accepted[_WARM_CALLS:] if call.answered_at < first_fault_at]
    on_chain = [verifier.chain.calls.get(call.as_acknowledged().key, []) for call in accepted]
    return Trial(
        calls=len(calls),
        accepted=len(accepted),
        settled_once=sum(len(mined) == 1 for mined in on_chain),
        lost=len(result.lost),
        doubled=len(result.doubled),
        charged_wrongly=len(result.charged_wrongly),
        ledger_difference=result.ledger_difference,
        account_nonces_left_out=len(result.nonce_gaps),
        faults=list(faults),
        accept_ms=round(median(quiet) * 1e3, 1) if quiet else 0.0,
        longest_response_seconds=round(max(call.answered_at - call.began_at for call in accepted), 1),
        healthz_seconds=round(health.longest, 2),
        sign_in_seconds=round(sign_in.longest, 2),
        wrong=[
            *result.wrong,
            *([] if is_drained else [f"calls are not settled after {_SETTLED_SECONDS} s"]),
            *(f"no hash: {call.refusal or 'no response'}" for call in calls if not call.transaction_hash),
            *(f"two hashes for one call: {call.answers}" for call in calls if len(call.answers) > 1),
        ],
    )


def _cause(faults: Mapping[str, Callable[[], None]], traffic: Traffic, number: int) -> float:
    """Cause the faults one after the other during this many calls; return when the first began."""
    first_at = float("inf")
    for place, (name, cause) in enumerate(faults.items()):
        # Half of the calls are made before the first fault.
        _until(traffic, number * (1 + place / len(faults)) / 2)
        first_at = min(first_at, time.monotonic())
        echo(f"  · {len(traffic.calls)} calls, {name}")
        cause()
    _until(traffic, number)
    return first_at


def _until(traffic: Traffic, number: float) -> None:
    while (made := len(traffic.calls)) < number:
        another = partial(_more_than, traffic, made)
        wait_until(another, "no more calls are made", seconds=START_SECONDS)


def _more_than(traffic: Traffic, number: int) -> bool:
    return len(traffic.calls) > number


def _faults(stack: Stack) -> Mapping[str, Callable[[], None]]:
    """Return the faults by name; with local keys they happen to a web process."""
    is_local = stack.journal is None
    what = "web process" if is_local else "signer"
    one = partial(_web_process, stack) if is_local else partial(_process, stack, "signer")
    faults: dict[str, Callable[[], None]] = {
        f"{what} killed": partial(_kill, stack, one),
        f"{what} stalled for {_STALLED_SECONDS} s": partial(_stall, one, _STALLED_SECONDS),
        f"{what} stalled for {_AWAY_SECONDS} s": partial(_stall, one, _AWAY_SECONDS),
    }
    if "kms" in stack.processes:
        kms = partial(_process, stack, "kms")
        faults["kms killed"] = partial(_kill, stack, kms)
        faults[f"kms stalled for {_STALLED_SECONDS} s"] = partial(_stall, kms, _STALLED_SECONDS)
    return faults


def _process(stack: Stack, name: str) -> psutil.Process:
    return psutil.Process(stack.server(name).pid)


def _web_process(stack: Stack) -> psutil.Process:
    """Return a process that serves; the first one only starts the others."""
    return stack.members("web")[-1]


def _kill(stack: Stack, one: Callable[[], psutil.Process]) -> None:
    process = one()
    process.kill()
    with suppress(psutil.NoSuchProcess):
        process.wait()
    stack.wait_for_all()


def _stall(one: Callable[[], psutil.Process], seconds: float) -> None:
    process = one()
    process.suspend()
    try:
        time.sleep(seconds)
    finally:
        process.resume()


def _result(stack: Stack, verifier: Verifier, calls: Sequence[Call], since: float) -> Result:
    """Return the result once every account nonce is used; cancellations take some blocks."""
    deadline = time.monotonic() + _SETTLED_SECONDS
    while True:
        acknowledged = [call.as_acknowledged() for call in calls]
        result = verifier.verify(stack.services.database_url, acknowledged, since=since)
        if not result.nonce_gaps or time.monotonic() > deadline:
            return result
        time.sleep(1)


_HEAD = (
    "keys",
    "calls",
    "accepted",
    "settled once",
    "lost",
    "doubled",
    "charged wrongly",
    "ledger difference",
    "account nonces left out",
    "signed (account nonces)",
    "signed anew",
    "signed wrongly",
    "accept, median",
    "beside local keys",
    "longest wait for a hash",
    "longest /healthz",
    "longest sign-in",
)


def table(trials: Mapping[str, Trial]) -> str:
    """Return the trials as a Markdown table."""
    local = trials.get(KeyPlace.LOCAL)
    return markdown(_HEAD, (_cells(KeyPlace(place), trial, local) for place, trial in trials.items()))


def _cells(place: KeyPlace, trial: Trial, local: Trial | None) -> Sequence[object]:
    journal = trial.journal
    return [
        _TITLES[place],
        trial.calls,
        trial.accepted,
        trial.settled_once,
        trial.lost,
        trial.doubled,
        trial.charged_wrongly,
        trial.ledger_difference,
        trial.account_nonces_left_out,
        f"{journal.signatures} ({journal.account_nonces})" if journal else "",
        journal.signed_anew if journal else "",
        len(journal.wrong) if journal else "",
        f"{trial.accept_ms:.0f} ms",
        f"{trial.accept_ms - local.accept_ms:+.0f} ms" if local else "",
        f"{trial.longest_response_seconds:.0f} s",
        f"{trial.healthz_seconds:.2f} s",
        f"{trial.sign_in_seconds:.2f} s",
    ]
