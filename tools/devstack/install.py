"""
Installs locked packages into this Python's environment: with uv, or with pip where uv fails.

`python -m devstack.install LOCK…` runs before anything is installed, so it needs only Python.
uv takes seconds where pip takes minutes, but it does not read pip's configuration. It gets that from here.
"""

import ast
import os
import re
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[2]
_UV_LOCK = _PROJECT / "requirements" / "lock.txt"
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
# A package of a lock file.
_PINNED = re.compile(r"^[A-Za-z0-9._-]+==", re.MULTILINE)
_CLIENT = _PROJECT / "clients" / "python" / "src"
_LAST_LINES = 5
# How pip and uv report that no index responds.
_NO_NETWORK = re.compile(
    "connection broken by|error sending request|dns error|tcp connect error", re.IGNORECASE
)
_OFFLINE = (
    "  ✗ The index of Python packages does not respond, so nothing was installed. Connect this machine to the "
    "Internet, or name a mirror or proxy in pip's configuration, and run the command again."
)


def main(locks: Sequence[str]) -> int:
    """Install what the lock files name, and link the Python client; return pip's exit status if uv and pip fail."""
    started = time.monotonic()
    number = sum(len(_PINNED.findall(Path(lock).read_text(encoding="utf-8"))) for lock in locks)
    print(
        f"  … {number} Python packages, up to 1 GB; this takes from some seconds to some minutes", flush=True
    )
    wanted = [argument for lock in locks for argument in ("-r", lock)]
    tool = "uv"
    if reason := _install_with_uv(wanted):
        if _NO_NETWORK.search(reason):
            print(_OFFLINE, file=sys.stderr)
            return 1
        tool = "pip"
        print(f"  · uv failed; pip installs instead, which takes minutes:\n{reason}", flush=True)
        outcome = subprocess.run([*_PIP, "install", "--quiet", "--require-hashes", *wanted], check=False)
        if outcome.returncode != 0:
            return outcome.returncode
    site = Path(sysconfig.get_path("purelib"))
    (site / "credit-relay-client.pth").write_text(f"{_CLIENT}\n")
    packages, size = _installed(site)
    seconds = time.monotonic() - started
    print(
        f"  ✓ {tool} installed {packages} packages, {size // 2**20} MB, compiled ({seconds:.1f} s)",
        flush=True,
    )
    return 0


def pip_settings(listing: str) -> dict[str, str]:
    """
    Return pip's effective options from the output of `pip config list`, such as `{"index-url": "https://…"}`.

    As in pip, `[install]` overrides `[global]`, and a variable of the environment (`PIP_…`) overrides both.
    """
    found: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if section in found:
            found[section][option] = str(ast.literal_eval(value))
    return found["global"] | found["install"] | found[":env:"]


def uv_arguments(settings: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """Return uv's arguments for pip's find-links, trusted hosts and certificate."""
    arguments = [f"--find-links={place}" for place in settings.get("find-links", "").split()]
    arguments += [f"--allow-insecure-host={host}" for host in settings.get("trusted-host", "").split()]
    if settings.get("no-index", "").lower() in {"1", "true", "yes", "on"}:
        arguments.append("--no-index")
    # pip's HTTP library reads the two variables.
    bundles = (settings.get("cert"), environment.get("REQUESTS_CA_BUNDLE"), environment.get("CURL_CA_BUNDLE"))
    bundle = next(filter(None, bundles), None)
    # Without a bundle, current versions of pip trust the system's certificates, and so does `devstack.toolchain`.
    arguments.append(f"--cert={bundle}" if bundle else "--system-certs")
    return arguments


def uv_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return uv's variables for pip's indexes, proxy, client certificate and timeout; their URLs may hold passwords."""
    variables = {
        # Like pip, take a package from whichever index has it; the hashes decide which file is accepted.
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_DEFAULT_INDEX": settings.get("index-url"),
        "UV_INDEX": " ".join(settings.get("extra-index-url", "").split()),
        "SSL_CLIENT_CERT": settings.get("client-cert"),
        "UV_HTTP_TIMEOUT": settings.get("default-timeout", settings.get("timeout")),
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), settings.get("proxy")),
    }
    return {name: value for name, value in variables.items() if value}


def _install_with_uv(wanted: Sequence[str]) -> str:
    """Install uv with pip and the packages with uv; return the reason of a failure, or an empty string."""
    listed = _run([*_PIP, "config", "list"])
    fetched = _run([*_PIP, "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(_UV_LOCK)])
    if failed := next((step for step in (listed, fetched) if step.returncode != 0), None):
        return _reason_of(failed.stderr)
    settings = pip_settings(listed.stdout)
    uv = str(Path(sysconfig.get_path("scripts")) / "uv")
    options = ["--quiet", "--python", sys.executable, "--require-hashes", "--compile-bytecode"]
    options += uv_arguments(settings, os.environ)
    try:
        installed = _run([uv, "pip", "install", *options, *wanted], uv_environment(settings))
    except OSError as error:
        return f"    {error}"
    return _reason_of(installed.stderr) if installed.returncode != 0 else ""


def _run(
    command: Sequence[str], variables: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, env=os.environ | dict(variables or {}), capture_output=True, text=True, check=False
    )


def _reason_of(errors: str) -> str:
    """Return the last lines of the errors, or the line by which a missing network is recognised."""
    if offline := _NO_NETWORK.search(errors):
        return offline[0]
    return (
        "\n".join(f"    {line}" for line in errors.strip().splitlines()[-_LAST_LINES:])
        or "    no error message"
    )


def _installed(site: Path) -> tuple[int, int]:
    """Return how many packages the folder has, and their size in bytes."""
    return len(list(site.glob("*.dist-info"))), sum(entry.lstat().st_size for entry in site.rglob("*"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
