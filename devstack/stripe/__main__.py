"""`python -m devstack.stripe`: run the double in the foreground."""

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from devstack.stripe.control.cardholder import PREFIX as CARDHOLDER
from devstack.stripe.control.cardholder import CardholderPage
from devstack.stripe.control.desk import Desk
from devstack.stripe.control.room import PREFIX as CONTROLS
from devstack.stripe.control.room import ControlRoom
from devstack.stripe.events.endpoints import configure
from devstack.stripe.events.postman import Postman
from devstack.stripe.events.telling import tell
from devstack.stripe.nouns.catalogue import OPERATIONS
from devstack.stripe.runner import Runner
from devstack.stripe.state.account import Account, open_account
from devstack.stripe.wire.application import Application
from devstack.stripe.wire.exchange import Request, Response
from devstack.stripe.wire.faults import Faults
from devstack.stripe.wire.http_server import HttpServer
from devstack.stripe.wire.request_log import RequestLog


def main() -> None:
    """Listen until the process is ended."""
    options = _options()
    account = open_account(options.data, tell)
    if options.webhook_url:
        with account.unit():
            configure(account, options.webhook_url, options.webhook_secret)
    runner = Runner(account, Postman(account))
    server = HttpServer(options.port, _doors(account, runner, options.secret_key))
    account.address = server.url
    runner.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"Stripe double at {server.url}", flush=True)
    server.serve_forever()


def _doors(account: Account, runner: Runner, secret_key: str) -> Callable[[Request], Response]:
    faults, log = Faults(), RequestLog()
    application = Application(account, OPERATIONS, secret_key, faults=faults, log=log)
    controls = ControlRoom(Desk(account, runner, faults, log), secret_key)
    page = CardholderPage(account)

    def answer(request: Request) -> Response:
        if request.path == "/healthz":
            return Response(200, {"status": "ok"})
        if request.path.startswith(CONTROLS):
            return controls.answer(request)
        if request.path.startswith(CARDHOLDER):
            return page.answer(request)
        return application.answer(request)

    return answer


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m devstack.stripe", description="A double of Stripe.")
    parser.add_argument("--port", type=int, required=True, help="loopback port to listen on")
    parser.add_argument("--data", type=Path, required=True, help="folder that keeps the account")
    parser.add_argument("--secret-key", required=True, help="the account's key, sk_test_…")
    parser.add_argument("--webhook-url", help="where every event is sent")
    parser.add_argument("--webhook-secret", help="what signs them, whsec_…")
    options = parser.parse_args()
    if not options.secret_key.startswith("sk_test_"):
        parser.error("--secret-key begins with sk_test_")
    if bool(options.webhook_url) != bool(options.webhook_secret):
        parser.error("--webhook-url and --webhook-secret come together")
    return options


if __name__ == "__main__":
    main()
