"""
A sponsor's server: its page gives a newcomer a key, a Universal Profile and a first post, without a coin.

    .venv/bin/python clients/newcomer/server.py var/stack.json     (while `make run` is running)

Then open http://127.0.0.1:8091. The API key stays in this process, the newcomer's key in the browser. For another
service, write a file with base_url, rpc_url, and sponsor, which has its name and the API key create_key.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from credit_relay_client import RelayProblem, ServiceUnreachable, create_profile

stack = json.loads(Path(sys.argv[1]).read_text())
port = int(sys.argv[2]) if len(sys.argv) > 2 else 8091
url, node, sponsor = stack["base_url"], stack["rpc_url"], stack["sponsor"]
here = Path(__file__).resolve().parent
files = {
    "/": (here / "index.html", "text/html"),
    "/relay-client.js": (here.parents[1] / "portal/static/portal/relay-client.js", "text/javascript"),
    "/ethers.js": (here.parent / "typescript/node_modules/ethers/dist/ethers.min.js", "text/javascript"),
}
# The page can send what it knows, such as its key, to these addresses alone.
policy = f"default-src 'none'; connect-src 'self' {url} {node}; img-src data:; style-src 'unsafe-inline'"
policy += "; script-src 'self' 'unsafe-inline'"


def profile_for(request: bytes, network: str) -> tuple[int, dict[str, Any]]:
    """Return the status and body of the response: the profile of the controller, or why there is none."""
    # Decide here who gets a profile: whoever has signed up, solved your captcha, or holds your invitation.
    try:
        controller = json.loads(request)["controller"]
        # The same key for each repeat, so a controller gets one profile, however often its page asks. A policy may
        # limit the profiles of one origin in a day, here of one network address.
        key = str(controller).lower()
        profile = create_profile(url, sponsor["create_key"], [controller], key=key, origin=network)
    except RelayProblem as problem:
        return problem.status, {"code": problem.code, "detail": problem.detail}
    except (ServiceUnreachable, TimeoutError) as late:
        return 504, {"code": "service-away", "detail": str(late)}
    except (LookupError, TypeError, ValueError) as mistake:
        return 400, {"code": "invalid-request", "detail": str(mistake)}
    return 200, dict(profile)


class Handler(BaseHTTPRequestHandler):
    """Serves the page, what it must know, and profiles."""

    def do_GET(self) -> None:
        """Send the page, a script of it, or its settings."""
        if self.path == "/settings.json":
            return self._send_json(200, {"url": url, "node": node, "sponsor": sponsor["name"]})
        file, kind = files.get(self.path, (None, ""))
        return (
            self._send(200, file.read_bytes(), kind) if file else self._send(404, b"Not found", "text/plain")
        )

    def do_POST(self) -> None:
        """Create a profile; pages of other sites cannot ask, because they cannot send JSON here."""
        if self.path != "/profile" or self.headers["Content-Type"] != "application/json":
            return self._send_json(400, {"code": "invalid-request", "detail": "Post JSON to /profile."})
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        return self._send_json(*profile_for(body, self.client_address[0]))

    def _send_json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(content)


print(f"Newcomers of {sponsor['name']}: http://127.0.0.1:{port}", flush=True)
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
