"""What compose.yaml gives to whom."""

import json
import os
import re
import secrets
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from devstack.chart import process_files
from devstack.processes import Web
from gateway.processes import USED_BY, withheld
from signer import probe
from signer.configuration import Misconfigured, configure
from tests.gateway.test_wiring import settings_with

SIGNER_CLIENTS = {"web", "web-meanwhile", "admin", "worker-relay"}
WITHOUT_SIGNER = {"worker-default", "beat", "migrate", "eraser"}
# These secrets are mounted as files; the others are in .env.
FILES = {"AUTH_SIGNING_KEYS", "LEDGER_SIGNING_KEY"}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services of compose.yaml, merged as Compose does it."""
    listed: dict[str, Any] = yaml.safe_load((settings.BASE_DIR / "compose.yaml").read_text())["services"]
    return listed


def test_images_of_others_are_pinned_by_digest(services: dict[str, Any]) -> None:
    images = [part["image"] for part in services.values() if not _is_ours(part)]
    bases = re.findall(r"^ARG PYTHON=(.+)$", (settings.BASE_DIR / "Dockerfile").read_text(), re.MULTILINE)

    assert len(images) == 3
    assert [
        image for image in images + bases if not re.fullmatch(r"\S+:\S+@sha256:[0-9a-f]{64}", image)
    ] == []
    froms = re.findall(r"^FROM (\S+)", (settings.BASE_DIR / "Dockerfile").read_text(), re.MULTILINE)
    assert set(froms) == {"${PYTHON}", "process"}


def test_the_devcontainer_has_the_linux_and_the_python_of_the_image() -> None:
    text = (settings.BASE_DIR / ".devcontainer" / "devcontainer.json").read_text()
    container = json.loads(re.sub(r"^ *//.*$", "", text, flags=re.MULTILINE))
    base = re.search(
        r"^ARG PYTHON=python:(\d+\.\d+)-slim-(\w+)@",
        (settings.BASE_DIR / "Dockerfile").read_text(),
        re.MULTILINE,
    )

    assert base is not None
    assert container["image"].endswith(f":{base[1]}-{base[2]}")
    assert container["remoteUser"] != "root"


def _is_ours(part: dict[str, Any]) -> bool:
    return bool(part["image"] == "credit-relay-gateway:${GATEWAY_VERSION:-current}")


def test_the_image_is_built_once_and_used_by_every_process_of_ours(services: dict[str, Any]) -> None:
    assert [name for name, part in services.items() if "build" in part] == ["migrate"]
    assert _is_ours(services["migrate"])


def test_postgres_is_healthy_only_once_it_accepts_tcp_connections(services: dict[str, Any]) -> None:
    """While its image makes the database, a server responds at the socket alone, and stops again."""
    assert services["postgres"]["healthcheck"]["test"][-2:] == ["-h", "127.0.0.1"]


def test_nothing_is_unhealthy_while_it_starts_slowly(services: dict[str, Any]) -> None:
    """`up` gives up on a container that is, and with it on all that depend on it."""
    checks = [part["healthcheck"] for part in services.values() if part.get("healthcheck", {}).get("test")]
    image = (settings.BASE_DIR / "Dockerfile").read_text()

    assert {check.get("start_period") for check in checks} == {"3m", "5m"}
    assert "--start-period=3m" in image


def test_a_busy_host_has_time_to_start_a_health_check_of_ours(services: dict[str, Any]) -> None:
    """The checks have limits of their own for the response; `up --wait` gives up on a container that is unhealthy."""
    ours = [part for part in services.values() if _is_ours(part)]
    checks = [part["healthcheck"] for part in ours if part.get("healthcheck", {}).get("test")]
    image = (settings.BASE_DIR / "Dockerfile").read_text()

    assert {check.get("timeout") for check in checks} == {"10s"}
    assert "--timeout=10s" in image


@pytest.mark.parametrize(("status", "is_healthy"), [(200, True), (404, False), (503, False), (None, False)])
def test_a_process_with_a_port_is_healthy_while_it_returns_200(status: int | None, is_healthy: bool) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if status and self.path == "/healthz" else 500)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Stay silent."""

    image = (settings.BASE_DIR / "Dockerfile").read_text()
    (check,) = re.findall(r"^HEALTHCHECK .*\\\n +CMD (\[.+\])$", image, re.MULTILINE)
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        command = json.loads(check.replace("/127.0.0.1/8000 ", f"/127.0.0.1/{server.server_port} "))
        assert command != json.loads(check)
        if status is None:
            server.server_close()
        thread = threading.Thread(target=server.handle_request if status else str, daemon=True)
        thread.start()
        assert (subprocess.run(command, capture_output=True).returncode == 0) is is_healthy
        thread.join()


def test_the_signers_health_check_is_the_file_that_loads_nothing_of_it(services: dict[str, Any]) -> None:
    check = services["signer"]["healthcheck"]["test"]
    assert check == ["CMD", "python", "-I", str(Path(probe.__file__).relative_to(settings.BASE_DIR))]


def test_the_signers_trusted_code_is_configured_in_env(services: dict[str, Any]) -> None:
    environment = services["signer"]["environment"]
    names = {name for name in environment if name.startswith("SIGNER_TRUSTED")}
    assert names == {"SIGNER_TRUSTED_PROFILES", "SIGNER_TRUSTED_KEY_MANAGERS"}
    assert {environment[name] for name in names} == {f"${{{name}:-}}" for name in names}


def test_every_process_of_ours_is_known_here(services: dict[str, Any]) -> None:
    assert {name for name, part in services.items() if _is_ours(part)} == SIGNER_CLIENTS | WITHOUT_SIGNER | {
        "signer"
    }


@pytest.mark.parametrize("name", sorted(SIGNER_CLIENTS))
def test_processes_that_sign_use_the_signers_socket(services: dict[str, Any], name: str) -> None:
    environment, signer = services[name]["environment"], services["signer"]
    assert settings_with(**_environment(services, name)).RELAY_SIGNER == "remote"
    assert environment["SIGNER_URL"] == signer["environment"]["SIGNER_LISTEN"]
    assert services[name]["volumes"] == ["signer_socket:/run/signer"]
    assert "signer_socket:/run/signer" in signer["volumes"]


@pytest.mark.parametrize("name", sorted(WITHOUT_SIGNER))
def test_other_processes_cannot_reach_the_signer(services: dict[str, Any], name: str) -> None:
    assert settings_with(**_environment(services, name)).RELAY_SIGNER == "none"
    assert "volumes" not in services[name]


@pytest.mark.parametrize("name", sorted(SIGNER_CLIENTS | WITHOUT_SIGNER))
def test_no_process_but_the_signer_gets_a_key(services: dict[str, Any], name: str) -> None:
    text = str(services[name])
    assert not any(word in text for word in ("RELAY_RELAYER", "RELAY_TREASURY_KEY", "keystore"))


def test_the_signer_gets_its_keys_and_nothing_of_the_others(services: dict[str, Any]) -> None:
    signer = services["signer"]
    assert not {name for name in signer["environment"] if not name.startswith(("SIGNER_", "CHAIN", "RELAY_"))}
    assert {name for name in signer["environment"] if name.startswith("RELAY_")} == {
        *("RELAY_FEE_CAP_WEI", "RELAY_MAX_GAS", "RELAY_DEPLOYMENT_MAX_GAS"),
        *("RELAY_TOP_UP_BELOW_WEI", "RELAY_TOP_UP_DAILY_WEI"),
    }
    assert signer["secrets"] == ["keystore_password"]
    # Nothing that other processes read: an operator writes it for further chains alone.
    assert signer["env_file"] == [{"path": ".env.signer", "required": False}]
    given = {
        name: text if text.startswith(("/", "unix:")) else "" for name, text in signer["environment"].items()
    }
    with pytest.raises(
        Misconfigured, match=r"^Set CHAIN_ID\. Set SIGNER_RPC_URL\. SIGNER_KEYSTORE_PASSWORD_FILE names"
    ):
        configure(given)


def _file_environment(services: dict[str, Any], name: str) -> dict[str, str]:
    """Return what the second environment file of a service sets."""
    common, own = services[name]["env_file"]
    assert common == ".env"
    lines = (settings.BASE_DIR / own).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def test_files_made_from_the_list_of_secrets_are_current() -> None:
    """If not, run `make chart`."""
    assert {path: path.read_text() for path in process_files()} == process_files()


@pytest.mark.parametrize("name", sorted(SIGNER_CLIENTS | WITHOUT_SIGNER))
def test_a_process_gets_no_secret_that_it_does_not_use(services: dict[str, Any], name: str) -> None:
    environment, given = services[name]["environment"], _file_environment(services, name)
    process = "web" if name == "web-meanwhile" else name
    assert given == {"GATEWAY_PROCESS": process, **dict.fromkeys(withheld(process), "")}
    mounted = set(services[name].get("secrets", ())) - {"ledger_public_keys"}
    assert mounted == {secret.lower() for secret in FILES if process in USED_BY[secret]}
    assert mounted == {secret.lower() for secret in USED_BY if f"{secret}_FILE" in environment}


@pytest.mark.parametrize("name", sorted(WITHOUT_SIGNER | {"admin", "worker-relay"}))
def test_a_process_starts_without_withheld_secrets(services: dict[str, Any], name: str) -> None:
    loaded = settings_with(**_environment(services, name))
    for secret in withheld(name):
        assert not getattr(loaded, secret if secret != "METRICS_TOKEN" else "METRICS_TOKENS")


@pytest.mark.parametrize("name", sorted((SIGNER_CLIENTS | WITHOUT_SIGNER) - {"web-meanwhile"}))
def test_a_process_does_not_start_with_a_secret_that_it_does_not_use(
    services: dict[str, Any], name: str
) -> None:
    environment = _environment(services, name)
    for secret in withheld(name):
        with pytest.raises(SystemExit, match=f"must not be given {secret}"):
            settings_with(**environment | {secret: secrets.token_hex()})


def _environment(services: dict[str, Any], name: str) -> dict[str, str]:
    """Return what decides which secrets a service has; everything else comes from the tests' environment."""
    signer = services[name]["environment"].get("SIGNER_URL", "")
    return {**_file_environment(services, name), "SIGNER_URL": signer, "RELAY_RELAYER_KEYS": ""}


@pytest.mark.parametrize("name", sorted(SIGNER_CLIENTS | WITHOUT_SIGNER | {"signer"}))
def test_every_process_runs_read_only_and_without_capabilities(services: dict[str, Any], name: str) -> None:
    part = services[name]
    assert (part["read_only"], part["cap_drop"], part["init"]) == (True, ["ALL"], True)
    assert part["security_opt"] == ["no-new-privileges:true"]
    assert not part.get("privileged")
    assert all(port.startswith("127.0.0.1:") for port in part.get("ports", ()))


def test_the_relay_worker_starts_without_redis_and_its_health_is_that_of_its_loops(
    services: dict[str, Any],
) -> None:
    part = services["worker-relay"]
    assert set(part["depends_on"]) == {"migrate"}
    options = re.findall(r"--[a-z-]+(?: [a-z]+)?", part["command"])
    assert options == ["--queues relay", "--pool solo", "--without-heartbeat"]


@pytest.mark.parametrize("name", ["beat", "eraser", "worker-default", "worker-relay"])
def test_a_process_without_a_port_is_healthy_as_long_as_it_renews_its_file(
    services: dict[str, Any], tmp_path: Path, name: str
) -> None:
    part = services[name]
    kind, command = part["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    assert part["environment"]["ALIVE_FILE"] in command
    file = tmp_path / "alive"
    check = ["sh", "-c", command.replace(part["environment"]["ALIVE_FILE"], str(file))]

    assert subprocess.run(check, capture_output=True).returncode != 0
    file.touch()
    assert subprocess.run(check, capture_output=True).returncode == 0
    old = time.time() - 180
    os.utime(file, (old, old))
    assert subprocess.run(check, capture_output=True).returncode != 0


def test_only_migrations_and_erasures_connect_as_the_owner_of_the_tables(services: dict[str, Any]) -> None:
    owners = {
        name
        for name, part in services.items()
        if "//gateway:" in part.get("environment", {}).get("DATABASE_URL", "")
    }
    assert owners == {"migrate", "eraser"}


def test_every_container_has_bounds_and_keeps_no_log_for_ever(services: dict[str, Any]) -> None:
    for name, part in services.items():
        options = part["logging"]["options"]
        assert set(options) == {"max-size", "max-file", "mode", "max-buffer-size"}
        assert options["mode"] == "non-blocking"
        assert "mem_limit" in part or name in {"postgres", "roles"}


def test_during_an_upgrade_another_web_process_serves_at_another_port(services: dict[str, Any]) -> None:
    own = {"profiles", "ports"}
    meanwhile = {key: part for key, part in services["web-meanwhile"].items() if key not in own}
    assert meanwhile == {key: part for key, part in services["web"].items() if key not in own}
    assert services["web-meanwhile"]["profiles"] == ["upgrade"]


def test_the_image_runs_the_web_server_as_the_dev_stack_does(tmp_path: Path) -> None:
    last = (settings.BASE_DIR / "Dockerfile").read_text().splitlines()[-1]
    image: list[str] = json.loads(last.removeprefix("CMD "))
    address = ["--host", "0.0.0.0"]  # noqa: S104 - inside a container
    stack = " ".join(Web(tmp_path, {}, port=8000).command()[2:])

    # Without it, granian ends all web processes when one of them is killed.
    assert "--respawn-failed-workers" in image
    assert set(image) - set(address) == set(
        stack.replace("--host 127.0.0.1", "").replace("--workers-kill-timeout 5", "").split()
    )
