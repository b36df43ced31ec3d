"""No client goes through the proxies that the environment names, or all of them would have to."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import product
from typing import Any

import pytest
import requests
from botocore.exceptions import EndpointConnectionError
from django.core.checks import run_checks

from devstack.files import PROJECT
from devstack.services.stack import Services
from signer.aws import kms_client
from tests.gateway.test_wiring import settings_with

_NAMES = [
    name
    for kind, case in product(("http", "https", "all"), (str.lower, str.upper))
    for name in [case(f"{kind}_proxy")]
]
# Each request fails, if it is not sent through the proxy: nothing listens at these addresses.
_CLIENTS = {
    "stripe": """
from payments.stripe.requests import GuardedClient
GuardedClient(timeout_seconds=2, places=1).request("get", "http://127.0.0.1:1/", {}, None)
""",
    "documents of other parties": """
from gateway.common.http import fetch_json
fetch_json("http://127.0.0.1:1/")
""",
    "nodes": """
from gateway.chain.client import get_chain_client
get_chain_client().head()
""",
    "webhooks": """
from gateway.common import public_http
allowed = public_http.Exceptions(http=True, loopback=True)
public_http.post("http://127.0.0.1:1/", body=b"", headers={}, seconds=2, allowed=allowed)
""",
    "traces": """
import requests
requests.post("http://127.0.0.1:1/", timeout=2)
""",
    "error reports": """
import sentry_sdk
from gateway.common import logging
sentry_sdk.init(**{**logging.sentry_options(), "dsn": "http://key@127.0.0.1:1/1"})
sentry_sdk.capture_message("a report")
sentry_sdk.flush(2)
""",
    "mail": """
from django.core.mail import send_mail
send_mail("a subject", "a text", None, ["somebody@example.org"])
""",
}


@pytest.fixture
def proxy() -> Iterator[socket.socket]:
    """A proxy that accepts connections, and never responds."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        listening.setblocking(False)
        yield listening


def environment(proxy: socket.socket) -> dict[str, str]:
    return dict.fromkeys(_NAMES, f"http://127.0.0.1:{proxy.getsockname()[1]}")


def was_used(proxy: socket.socket) -> bool:
    with suppress(BlockingIOError):
        proxy.accept()[0].close()
        return True
    return False


def test_the_proxy_of_these_tests_is_used_by_a_client_that_honours_it(
    proxy: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, url in environment(proxy).items():
        monkeypatch.setenv(name, url)
    with pytest.raises(requests.RequestException):
        requests.get("http://127.0.0.1:1/", timeout=1)
    assert was_used(proxy)


def test_no_client_of_the_service_uses_a_proxy(proxy: socket.socket, services: Services) -> None:
    attempts = [
        "import django, os",
        "django.setup()",
        "from django.conf import settings",
        'settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1',
        f"for client, code in {_CLIENTS!r}.items():",
        "    try: exec(code)",
        "    except Exception as error: print(client, type(error).__name__, flush=True)",
        "    else: print(client, flush=True)",
        "os._exit(0)",
    ]
    outcome = subprocess.run(
        [sys.executable, "-c", "\n".join(attempts)],
        cwd=PROJECT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "gateway.settings", **environment(proxy)},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert outcome.stdout.splitlines() == [
        "stripe APIConnectionError",
        "documents of other parties FetchFailed",
        "nodes NodeUnavailable",
        "webhooks NoResponse",
        "traces ConnectionError",
        "error reports",
        "mail ConnectionRefusedError",
    ]
    assert outcome.stderr.count("HTTPS_PROXY is set, but this service does not use it.") == 1
    assert not was_used(proxy)


def test_the_signer_reaches_its_device_without_a_proxy(
    proxy: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "eu-central-1"}
    for name, value in (environment(proxy) | access).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EndpointConnectionError):
        kms_client(endpoint="http://127.0.0.1:1").list_keys()
    assert not was_used(proxy)


def test_a_start_and_the_checks_name_what_is_set_in_vain(settings: Any) -> None:
    loaded = settings_with(HTTPS_PROXY="http://proxy", RELAY_TRACK_SECONDS="9", RELAY_FEE_CAP_WEI="7")
    assert {"HTTPS_PROXY", "RELAY_TRACK_SECONDS"} <= set(loaded.UNREAD_VARIABLES)
    assert "RELAY_FEE_CAP_WEI" not in loaded.UNREAD_VARIABLES

    settings.UNREAD_VARIABLES = ["RELAY_TRACK_SECONDS"]
    messages = [found.msg for found in run_checks(tags=["gateway"], include_deployment_checks=True)]
    assert "RELAY_TRACK_SECONDS is set, but this service does not use it." in messages
