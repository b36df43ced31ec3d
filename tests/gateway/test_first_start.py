"""The first start: `.env.example` is enough for it, and all mistakes in a `.env` are named at once."""

import os
import re
import secrets
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from devstack.ports import free_port
from devstack.processes import Web
from tests.docs.pages import DOCS, ROOT, code_spans, rows
from tests.gateway.test_wiring import settings_with
from tests.settings import signing_key

MISTAKES = {
    "TRUSTED_PROXY_COUNT": (
        "TRUSTED_PROXIES_COUNT",
        "1",
        "TRUSTED_PROXIES_COUNT is not a setting; did you mean TRUST",
    ),
    "ALLOWED_HOSTS": ("ALLOWED_HOSTS", "https://gateway.example", "ALLOWED_HOSTS must list host names only"),
    "SECRET_KEY": ("SECRET_KEY", secrets.token_hex(12), "SECRET_KEY needs at least 50 characters"),
    "CHAIN_ID": ("CHAIN_ID", "mainnet", "CHAIN_ID must be a whole number"),
    "CHAIN_RPC_URLS": (
        "CHAIN_RPC_URL",
        "https://node.example",
        "CHAIN_RPC_URL is not a setting; did you mean CHAIN_",
    ),
    "AUTH_DOMAIN": ("AUTH_DOMAIN", "", "Set the environment variable AUTH_DOMAIN"),
}
STARTS = {
    "migrate": [sys.executable, "manage.py", "migrate"],
    "worker": [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "gateway",
        "worker",
        "--queues",
        "relay",
        "--pool",
        "solo",
    ],
    "wsgi": [sys.executable, "-c", "import gateway.wsgi"],
}


def _example() -> dict[str, str]:
    """Return `.env.example` as step 1 of the deployment fills it in."""
    lines = re.findall(r"^([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE)
    return {name: text or secrets.token_hex(32) for name, text in lines}


def _composed(service: str) -> dict[str, str]:
    """Return the environment that Compose gives a service whose `.env` is the example."""
    part = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"][service]
    second = (ROOT / part["env_file"][1]).read_text()
    files = dict(re.findall(r"^([A-Z_]+)=(.*)$", second, re.MULTILINE))
    own = {name: re.sub(r"\$\{\w+[^}]*\}", "example", text) for name, text in part["environment"].items()}
    # The files that Compose mounts.
    mounted = {name.removesuffix("_FILE"): signing_key() for name in own if name.endswith("_FILE")}
    return {
        **_example(),
        **files,
        **{name: text for name, text in own.items() if not name.endswith("_FILE")},
        **mounted,
    }


def _with_mistakes() -> dict[str, str]:
    right = {name: text for name, text in _composed("web").items() if name not in MISTAKES}
    return right | {name: text for name, text, _ in MISTAKES.values()}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without the settings of the tests."""
    for name in list(os.environ):
        if name.startswith("DATABASE_") or any(
            name in code_spans(cells[0]) for cells in rows(DOCS / "configuration.md")
        ):
            monkeypatch.delenv(name)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    "service", ["web", "admin", "worker-relay", "worker-default", "beat", "migrate", "eraser"]
)
def test_the_example_is_enough_for_every_process(service: str) -> None:
    loaded = settings_with(**_composed(service))

    assert loaded.CREDIT_WEI == 10**12
    assert loaded.ALLOWED_HOSTS == ["gateway.example"]


@pytest.mark.parametrize("name", STARTS)
def test_one_start_names_all_six_mistakes_without_a_traceback(name: str) -> None:
    started = subprocess.run(
        STARTS[name],
        env={"PATH": os.environ["PATH"], **_with_mistakes()},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    first, *named = started.stderr.splitlines()
    assert started.returncode == 1
    assert first.startswith("This process cannot start, because 6 settings are wrong.")
    assert len(named) == len(MISTAKES)
    for _, value, message in MISTAKES.values():
        assert sum(message in line for line in named) == 1
        assert len(value) < 10 or value not in started.stderr


@pytest.mark.parametrize(
    ("command", "is_silent"), [("migrate", True), ("check --deploy --database default", False)]
)
def test_a_database_that_is_away_is_one_line(command: str, is_silent: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1] if is_silent else free_port()
        place = f"postgresql://gateway:{secrets.token_hex(8)}@127.0.0.1:{port}/gateway?connect_timeout=2"
        started = subprocess.run(
            [sys.executable, "manage.py", *command.split()],
            env={"PATH": os.environ["PATH"], **_composed("migrate"), "DATABASE_URL": place},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    assert started.returncode == 1
    named = f"CommandError: The database default at 127.0.0.1:{port} does not respond: "
    assert started.stderr.splitlines()[-1].startswith(named)
    assert "Traceback" not in started.stderr
    assert place not in started.stderr


def test_a_check_without_a_database_warns_of_it_once() -> None:
    port, nodes = free_port(), f"http://127.0.0.1:{free_port()}"
    place = f"postgresql://gateway:{secrets.token_hex(8)}@127.0.0.1:{port}/gateway"
    started = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy"],
        env={"PATH": os.environ["PATH"], **_composed("web"), "DATABASE_URL": place, "CHAIN_RPC_URLS": nodes},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    assert started.returncode == 0
    named = f"(gateway.W001) The database default at 127.0.0.1:{port} does not respond: "
    assert started.stderr.count("The database ") == started.stderr.count(named) == 1


def test_a_web_process_names_them_too(tmp_path: Path) -> None:
    command = Web(tmp_path, {}, port=free_port(), processes=1).command()
    command.remove("--respawn-failed-workers")

    started = subprocess.run(
        command, env=_with_mistakes(), cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )

    assert "because 6 settings are wrong" in started.stderr
    assert "Traceback" not in started.stdout + started.stderr
    assert all(message in started.stderr for _, _, message in MISTAKES.values())


@pytest.mark.usefixtures("bare")
def test_every_documented_setting_may_be_set_beside_the_example() -> None:
    """None of them, and nothing else that `.env` holds for Compose, is taken for another one that is misspelt."""
    documented = {
        code_spans(cells[0])[0]
        for cells in rows(DOCS / "configuration.md")
        if len(cells) == 3 and code_spans(cells[0])
    }
    unread = {name for name in documented if name.startswith("SIGNER_")} | {"GATEWAY_VERSION", "COMPOSE_FILE"}

    loaded = settings_with(
        **_composed("web") | dict.fromkeys(unread - {"SIGNER_URL", "SIGNER_TLS_FOLDER"}, "x")
    )

    assert loaded.RELAY_SIGNER == "remote"
