"""Any WSGI server runs the service: a wallet signs in, its call is relayed, and nothing waits for a change."""

import time
from typing import ClassVar

import pytest
import urllib3

from devstack.ports import free_port
from devstack.processes import Web
from tests.journeys.people import sign_in
from tests.journeys.stack import Stack

pytestmark = pytest.mark.journey


class WsgiWeb(Web):
    """A web process beside the first one, through `gateway.wsgi`."""

    name: ClassVar[str] = "web-wsgi"
    interface = "wsgi"


def test_a_wallet_signs_in_and_has_a_call_relayed_by_a_wsgi_server(stack: Stack) -> None:
    port = free_port()
    # Wallets sign in to the host that they call.
    environment = {**stack.environment, "AUTH_DOMAIN": f"127.0.0.1:{port}"}
    web = WsgiWeb(stack.logs, environment, port=port)
    with stack.joined_by(web):
        person = sign_in(stack.unused_profiles.pop(), base_url=web.url, rpc_url=stack.services.rpc_url)
        with stack.frozen(stack.worker):
            transaction = person.accepted(person.new_call())
            began = time.monotonic()
            response = person.api.ask_until_served(f"/api/relay/transactions/{transaction}?wait=20")
            seconds = time.monotonic() - began
        ended = person.ending(transaction)
        sheet = urllib3.request("GET", f"{web.url}/static/staff/staff.css")
        login = urllib3.request("GET", f"{web.url}/admin/login/")

    assert (response.status, response.body["status"]) == (200, "Pending")
    assert seconds < 10
    assert ended["status"] == "Success"
    assert (sheet.status, sheet.headers["content-type"]) == (200, 'text/css; charset="utf-8"')
    assert (login.status, "staff/staff.css" in login.data.decode()) == (200, True)
