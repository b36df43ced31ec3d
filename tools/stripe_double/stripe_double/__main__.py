"""`python -m stripe_double`: run the double in the foreground."""

import argparse
import signal
import sys
from pathlib import Path

from stripe_double.account import Account, open_account
from stripe_double.api import Api, RequestLog
from stripe_double.control.authentication import PREFIX as AUTHENTICATION_PREFIX
from stripe_double.control.authentication import AuthenticationPage
from stripe_double.control.context import Context
from stripe_double.control.server import PREFIX as CONTROL_PREFIX
from stripe_double.control.server import ControlServer
from stripe_double.events import set_endpoint
from stripe_double.faults import Faults
from stripe_double.http import Application, HttpServer, Request, Response
from stripe_double.operations import OPERATIONS
from stripe_double.pages import PREFIX as PAGES_PREFIX
from stripe_double.pages import HostedPages
from stripe_double.scheduler import Scheduler


def main() -> None:
    """Serve until the process is stopped."""
    options = _options()
    account = open_account(options.data)
    if options.webhook_url:
        with account.transaction():
            set_endpoint(account, options.webhook_url, options.webhook_secret)
    scheduler = Scheduler(account)
    server = HttpServer(options.host, options.port, _application(account, scheduler, options.secret_key))
    account.url = server.url
    scheduler.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"Stripe double at {server.url}", flush=True)
    server.serve_forever()


def _application(account: Account, scheduler: Scheduler, secret_key: str) -> Application:
    faults, log = Faults(), RequestLog()
    api = Api(account, OPERATIONS, secret_key, faults=faults, log=log)
    control = ControlServer(Context(account, scheduler, faults, log), secret_key)
    authentication, pages = AuthenticationPage(account), HostedPages(account)

    def handle(request: Request) -> Response:
        if request.path == "/healthz":
            return Response(200, {"status": "ok"})
        if request.path.startswith(CONTROL_PREFIX):
            return control.handle(request)
        if request.path.startswith(AUTHENTICATION_PREFIX):
            return authentication.handle(request)
        if request.path.startswith(PAGES_PREFIX):
            return pages.handle(request)
        return api.handle(request)

    return handle


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m stripe_double", description="A double of Stripe.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: loopback)")
    parser.add_argument("--port", type=int, required=True, help="port to listen on")
    parser.add_argument("--data", type=Path, required=True, help="folder that keeps the account")
    parser.add_argument("--secret-key", required=True, help="the account's secret key, sk_test_…")
    parser.add_argument("--webhook-url", help="URL of the webhook endpoint")
    parser.add_argument("--webhook-secret", help="secret of the webhook endpoint, whsec_…")
    options = parser.parse_args()
    if not options.secret_key.startswith("sk_test_"):
        parser.error("--secret-key begins with sk_test_")
    if bool(options.webhook_url) != bool(options.webhook_secret):
        parser.error("--webhook-url and --webhook-secret require each other")
    return options


if __name__ == "__main__":
    main()
