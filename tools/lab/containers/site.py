"""The folder of an operator: a release, the secrets, and the documented steps, which a shell carries out."""

import os
import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from devstack.files import PROJECT
from lab.containers.engine import Engine

DEPLOYMENT, RUNBOOK = "docs/deployment.md", "docs/runbook.md"
_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
# A single # begins a comment of a block.
_HEADING = re.compile(r"^##+ ", re.MULTILINE)
# What an operator types as root, where this command is root already. A balancer that reads its file replaces nginx.
_SUDO = """#!/bin/sh
case "$1" in
  tee) exec tee "$(dirname "$0")/../gateway.server" ;;
  nginx) exit 0 ;;
  *) exec "$@" ;;
esac
"""


def blocks(page: str, heading: str) -> list[str]:
    """Return the blocks of commands between a heading and the next one."""
    begin = page.index(f"{heading}\n") + len(heading)
    end = _HEADING.search(page, begin)
    return _BLOCK.findall(page[begin : end.start() if end else len(page)])


def with_names(text: str, names: Mapping[str, str]) -> str:
    """
    Return a text with the operator's own names in place of its examples, in the order that is given.

    Raises:
        ValueError: an example is not in the text, which says something else by now.
    """
    for example, own in names.items():
        if example not in text:
            raise ValueError(f"no example to replace: {example}")
        text = text.replace(example, own)
    return text


@dataclass(frozen=True)
class Site:
    """The folder of an operator, with a release and an engine to run it."""

    folder: Path
    engine: Engine

    @classmethod
    def unpack(cls, folder: Path, engine: Engine, names: Mapping[str, str]) -> "Site":
        """Return the folder with the files of the newest commit, and the operator's names among the settings."""
        folder.mkdir(parents=True)
        archive = subprocess.run(
            ["git", "archive", "HEAD"], cwd=PROJECT, capture_output=True, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
        # Step 1 copies it, and has its reader put hosts and nodes into the copy.
        settings = folder / ".env.example"
        settings.write_text(with_names(settings.read_text(), names))
        sudo = folder / "bin" / "sudo"
        sudo.parent.mkdir()
        sudo.write_text(_SUDO)
        sudo.chmod(0o755)
        return cls(folder, engine)

    def documented(
        self, page: str, heading: str, place: int = 0, *, names: Mapping[str, str] | None = None
    ) -> str:
        """Carry out the block of commands under a heading, the first or a later one; return what it prints."""
        return self.shell(with_names(blocks((self.folder / page).read_text(), heading)[place], names or {}))

    def shell(self, script: str) -> str:
        """Carry out commands in the folder; the first that fails ends them."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.engine.environment | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(
                f"exit {done.returncode}: {script.strip()[:300]}\n{(done.stdout + done.stderr)[-1500:]}"
            )
        return done.stdout

    def manage(self, command: str, *, service: str = "web") -> tuple[int, str]:
        """Run a management command in a container; return its exit status and what it printed."""
        done = subprocess.run(
            ["docker", "compose", "exec", "-T", service, "python", "manage.py", *command.split()],
            cwd=self.folder,
            env=self.engine.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def container(self, service: str) -> str:
        """Return the id of a service's container; empty if there is none."""
        return self.shell(f"docker compose ps --all --quiet {service}").strip()

    def running(self) -> dict[str, str]:
        """Return the containers that run, by service."""
        lines = self.shell("docker compose ps --format '{{.Service}} {{.ID}}'").splitlines()
        return dict(line.split() for line in lines)

    def wait_healthy(self, service: str, *, seconds: float = 600) -> float:
        """Wait until a service's container runs and is healthy; return the seconds."""
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            if (found := self.container(service)) and _is_healthy(self.engine, found):
                return time.monotonic() - began
            time.sleep(0.5)
        raise RuntimeError(f"{service} is not healthy after {seconds:.0f} s")

    def setting(self, name: str) -> str:
        """Return a variable of `.env`."""
        match = re.findall(rf"^{name}=(.*)$", (self.folder / ".env").read_text(), re.MULTILINE)
        return str(match[-1])

    def database_url(self) -> str:
        """Return the URL of the database at its container's address, as the owner."""
        networks = self.engine.inspect(self.container("postgres"))["NetworkSettings"]["Networks"]
        address = next(iter(networks.values()))["IPAddress"]
        return f"postgresql://gateway:{self.setting('POSTGRES_PASSWORD')}@{address}/gateway"


def _is_healthy(engine: Engine, container: str) -> bool:
    state = engine.inspect(container)["State"]
    return bool(state["Running"]) and state.get("Health", {}).get("Status", "healthy") == "healthy"
