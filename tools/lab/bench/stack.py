"""The measured stacks: this checkout's or another commit's, each started by its own code."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from devstack.console import step
from devstack.files import PROJECT, TOOLS, read_json
from devstack.process_lifetime import with_death_signal
from devstack.rpc import Rpc
from lab.bench.meter import Meter, command_of

BLOCK_SECONDS = 1
_START_SECONDS, _STOP_SECONDS = 300, 30
# The workers are ready some time after the web server, when CPU usage has dropped.
_QUIET_SHARE, _QUIET_SECONDS = 0.3, 60


@dataclass(frozen=True)
class Checkout:
    """A commit's folder, and the Python with its packages."""

    commit: str
    folder: Path
    python: Path
    # The place of the keys: web and relay worker, or a signer (`devstack.signing.KeyPlace`).
    keys: str = "local"

    @property
    def title(self) -> str:
        """The heading of its figures."""
        return self.commit if self.keys == "local" else f"{self.commit} {self.keys}"

    @property
    def tools(self) -> Path:
        """The folder of its `devstack`, which in older commits is the checkout itself."""
        return self.folder / "tools" if (self.folder / "tools").is_dir() else self.folder


@dataclass(frozen=True)
class Stack:
    """A running stack: addresses, profiles with credits, and a meter of its processes."""

    checkout: Checkout
    described: Mapping[str, Any]
    environment: Mapping[str, str]
    meter: Meter

    @property
    def base_url(self) -> str:
        """Where its web server responds."""
        return str(self.described["base_url"])

    @property
    def database_url(self) -> str:
        """Its database."""
        return str(self.described["database_url"])

    @property
    def rpc(self) -> Rpc:
        """Its chain."""
        return Rpc(self.described["rpc_url"])

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of its own management commands beside it."""
        command = [str(self.checkout.python), "manage.py", *arguments]
        # Reading a ledger of ten million entries exceeds the statement timeout of requests.
        environment = {**os.environ, **self.environment, "DATABASE_STATEMENT_TIMEOUT_SECONDS": "0"}
        return subprocess.run(
            command, cwd=self.checkout.folder, env=environment, capture_output=True, text=True, check=False
        )

    def web_command(self) -> list[str]:
        """Return the command that its web server was started with."""
        pid = next(process.pid for kind, process in self.meter.members() if kind == "web")
        return command_of(pid).split()


def search_path(folder: Path) -> str:
    """Return the PYTHONPATH of a checkout's modules, for a Python that may belong to another checkout."""
    return os.pathsep.join(str(folder / name) for name in ("", "tools", "tools/stripe_double"))


def this_checkout(keys: str = "local") -> Checkout:
    """Return this checkout; `+` after the commit marks uncommitted changes."""
    is_changed = bool(_git("status", "--porcelain", "--untracked-files=no"))
    commit = _git("rev-parse", "--short", "HEAD") + ("+" if is_changed else "")
    return Checkout(commit, PROJECT, Path(sys.executable), keys)


@contextmanager
def checkout_of(commit: str, *, environment: Path | None) -> Iterator[Checkout]:
    """Clone a commit into a temporary folder; `environment` is a virtual environment with its packages."""
    with tempfile.TemporaryDirectory(prefix="bench-clone-") as name:
        folder = Path(name) / "project"
        with step(f"cloning {commit}"):
            _git("clone", "--quiet", "--shared", "--no-checkout", str(PROJECT), str(folder))
            _git("-C", str(folder), "checkout", "--quiet", "--detach", commit)
        short = _git("-C", str(folder), "rev-parse", "--short", "HEAD")
        checkout = Checkout(short, folder, _python_of(folder, environment))
        _share_node_packages(checkout.tools / "devstack")
        yield checkout


def _share_node_packages(devstack: Path) -> None:
    ours = TOOLS / "devstack"
    if (devstack / "package-lock.json").read_bytes() == (ours / "package-lock.json").read_bytes():
        (devstack / "node_modules").symlink_to((ours / "node_modules").resolve())


def _python_of(folder: Path, environment: Path | None) -> Path:
    if environment is not None:
        return environment.resolve() / "bin" / "python"
    if all(_is_same(folder, f"requirements/{name}.txt") for name in ("base", "watching", "dev")):
        return Path(sys.executable)
    with step("installing its packages"):
        subprocess.run(["make", "-C", str(folder), ".venv/.installed"], check=True, stdout=subprocess.DEVNULL)
    return folder / ".venv" / "bin" / "python"


def _is_same(folder: Path, name: str) -> bool:
    return (folder / name).read_bytes() == (PROJECT / name).read_bytes()


@contextmanager
def running_stack(checkout: Checkout) -> Iterator[Stack]:
    """Run the checkout's production-like stack on temporary data."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        process = _started(checkout, folder)
        try:
            with step(f"starting the stack of {checkout.title}"):
                _wait(process, folder)
                meter = Meter(process.pid)
                _until_quiet(meter)
            described, environment = read_json(folder / "stack.json"), read_json(folder / "environment.json")
            yield Stack(checkout, described, environment, meter)
        finally:
            _stop(process)


def _started(checkout: Checkout, folder: Path) -> subprocess.Popen[bytes]:
    python = str(checkout.python)
    pace = ["--block-time", str(BLOCK_SECONDS)]
    signer = [] if checkout.keys == "local" else ["--signer", checkout.keys]
    command = [python, "-m", "devstack", "--data", str(folder), "run", "--load", *pace, *signer]
    environment = {**os.environ, "PYTHONPATH": search_path(checkout.folder)}
    with (folder / "stack.log").open("wb") as log:
        return subprocess.Popen(
            with_death_signal(command, signal.SIGTERM),
            cwd=checkout.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait(process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not (folder / "stack.json").exists() or not (folder / "environment.json").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            log = (folder / "stack.log").read_text(errors="replace").splitlines()[-12:]
            raise RuntimeError("\n  ".join(["the stack did not start:", *log]))
        time.sleep(0.2)


def _until_quiet(meter: Meter) -> None:
    deadline = time.monotonic() + _QUIET_SECONDS
    share = 1.0
    while share > _QUIET_SHARE and time.monotonic() < deadline:
        before = meter.read()
        time.sleep(1)
        used = meter.read().since(before)
        share = sum(used.seconds.values()) / used.at


def _stop(process: subprocess.Popen[bytes]) -> None:
    members = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS)
    process.kill()
    process.wait()
    for left in psutil.wait_procs(members, timeout=2)[1]:
        with suppress(psutil.NoSuchProcess):
            left.kill()


def _git(*arguments: str) -> str:
    git = shutil.which("git") or "git"
    outcome = subprocess.run([git, *arguments], cwd=PROJECT, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise RuntimeError(f"git {' '.join(arguments)}: {outcome.stderr.strip()}")
    return outcome.stdout.strip()
