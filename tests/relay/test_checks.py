"""What `manage.py check` reports about the relay."""

import os
import re
import runpy
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest
import structlog
from django.conf import settings as project
from django.core.checks import INFO, run_checks
from pytest_django import Settings

from devstack.services.stack import Services
from gateway.chain.signing import set_signer
from gateway.processes import withheld
from relay import checks
from tests.relay.chain import node_away


@pytest.fixture(autouse=True)
def _signer_of_the_settings() -> Iterator[None]:
    yield
    set_signer(None)


def messages(*, deploy: bool = False) -> list[tuple[str | None, str]]:
    """Return id and text of every finding that is more than information."""
    findings = run_checks(tags=["relay"], include_deployment_checks=deploy)
    if deploy:
        findings += checks.chain_identity()
    return [(messages.id, messages.msg) for messages in findings if messages.level > INFO]


def role_message() -> str:
    """Return the checks' findings about this process."""
    [text] = [messages.msg for messages in run_checks(tags=["relay"]) if messages.id == "relay.I001"]
    return text


def _refused_for(complaint: str | None) -> AbstractContextManager[object]:
    """Expect a refusal to start with this in its text, or none."""
    return pytest.raises(SystemExit, match=re.escape(complaint)) if complaint else nullcontext()


def test_a_correct_configuration_passes(services: Services) -> None:
    assert messages(deploy=True) == []


@pytest.mark.parametrize(
    "keys", [[], ["0x1234"], ["no key at all"], ["0x" + "0" * 64], [f"0x{secrets.token_hex(32)}", "0x12"]]
)
def test_a_missing_or_unreadable_key_is_reported_without_quoting_it(
    settings: Settings, keys: list[str]
) -> None:
    settings.RELAY_RELAYER_KEYS = keys
    set_signer(None)
    [(identifier, text)] = messages()
    assert identifier == "relay.E001"
    assert not any(key in text for key in keys)


def test_the_check_reports_whether_the_process_signs(settings: Settings) -> None:
    settings.RELAY_RELAYER_KEYS = [f"0x{secrets.token_hex(32)}", f"0x{secrets.token_hex(32)}"]
    set_signer(None)
    assert role_message() == "This process signs, for 2 relayers."
    settings.RELAY_SIGNER, settings.RELAY_RELAYER_KEYS = "none", []
    assert (role_message(), messages()) == ("This process does not sign and holds no relayer key.", [])


_BEAT = {**dict.fromkeys(withheld("beat"), ""), "GATEWAY_PROCESS": "beat"}


@pytest.fixture
def read_settings(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    """Return a function that reads the settings as a process with these changes of the environment would."""
    monkeypatch.setattr(structlog, "configure", lambda **_: None)

    def read(changes: dict[str, str]) -> None:
        for name, value in changes.items():
            monkeypatch.setenv(name, value)
        runpy.run_path(str(project.BASE_DIR / "gateway" / "settings.py"))

    return read


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, None),
        ({"RELAY_RELAYER_KEYS": ""}, "Set the environment variable RELAY_RELAYER_KEYS"),
        (_BEAT, "must not be given RELAY_RELAYER_KEYS"),
        ({**_BEAT, "RELAY_RELAYER_KEYS": ""}, None),
        ({**_BEAT, "RELAY_RELAYER_KEYS": "", "RELAY_RELAYER_KEYS_FILE": "/dev/null"}, "must not be given"),
        ({"SIGNER_URL": "http://signer"}, "SIGNER_URL must be unix:///path or https://host:port"),
        ({"SIGNER_URL": "https://user@signer:8443"}, "SIGNER_URL must be unix:///path or https://host:port"),
        ({"SIGNER_URL": "https://signer/path"}, "SIGNER_URL must be unix:///path or https://host:port"),
        ({"SIGNER_URL": "unix:///signer"}, "must not be given RELAY_RELAYER_KEYS"),
        ({"SIGNER_URL": "unix:///signer", "RELAY_RELAYER_KEYS": ""}, None),
        ({"GATEWAY_PROCESS": "elsewhere"}, "GATEWAY_PROCESS must be one of: "),
    ],
)
def test_keys_are_given_to_those_processes_alone_that_sign(
    read_settings: Callable[[dict[str, str]], None], changes: dict[str, str], complaint: str | None
) -> None:
    with _refused_for(complaint):
        read_settings(changes)


def test_a_key_that_cannot_be_read_stops_the_start() -> None:
    environment = {**os.environ, "RELAY_RELAYER_KEYS": "0x12", "DJANGO_SETTINGS_MODULE": "tests.settings"}
    started = subprocess.run(
        [sys.executable, "-c", "import gateway.web.rsgi"], env=environment, capture_output=True, check=False
    )
    assert started.returncode != 0
    assert b"RELAY_RELAYER_KEYS: entry 1 is not a private key" in started.stderr


def test_fee_bounds_that_contradict_each_other_are_an_error(settings: Settings) -> None:
    settings.RELAY_FEE_FLOOR_WEI = settings.RELAY_FEE_CAP_WEI + 1
    assert [identifier for identifier, _ in messages()] == ["relay.E003"]
    settings.RELAY_FEE_FLOOR_WEI = settings.RELAY_FEE_CAP_WEI
    assert messages() == []


def test_tips_above_the_fee_cap_are_an_error(settings: Settings) -> None:
    settings.RELAY_TIP_CAP_WEI = settings.RELAY_FEE_CAP_WEI
    assert messages() == []
    settings.RELAY_TIP_CAP_WEI = settings.RELAY_FEE_CAP_WEI + 1
    assert [identifier for identifier, _ in messages()] == ["relay.E005"]


def test_another_chain_than_the_nodes_is_an_error_on_deployment(
    services: Services, settings: Settings
) -> None:
    settings.CHAIN_ID = services.chain_id + 1
    set_signer(None)
    assert messages() == []
    [(identifier, text)] = messages(deploy=True)
    assert identifier == "relay.E002"
    assert str(services.chain_id) in text


def test_a_node_that_is_away_is_a_warning(services: Services) -> None:
    with node_away():
        assert [identifier for identifier, _ in messages(deploy=True)] == ["relay.W001"]


@pytest.mark.parametrize(
    ("urls", "quorum", "warns"), [(1, 1, False), (2, 1, True), (3, 1, True), (3, 2, False)]
)
def test_a_quorum_without_a_majority_is_a_warning(
    settings: Settings, urls: int, quorum: int, warns: bool
) -> None:
    settings.CHAIN_RPC_URLS = [f"http://node-{number}.example" for number in range(urls)]
    settings.CHAIN_QUORUM = quorum
    assert [warning.id for warning in checks.quorum()] == ["relay.W002"] * warns
