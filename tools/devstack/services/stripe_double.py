"""The Stripe double as a server of the stack."""

import os
import secrets
import sys
from pathlib import Path
from typing import ClassVar

from devstack.files import TOOLS, read_json, write_json
from devstack.ports import free_port
from devstack.services.server import Server, status_of
from stripe_double.account import publishable_key
from stripe_double.client import ControlClient


class StripeDouble(Server):
    """One Stripe account; its random keys are kept in its data folder."""

    name: ClassVar[str] = "stripe"

    def __init__(self, directory: Path, log_directory: Path, *, host: str = "127.0.0.1") -> None:
        """It sends no events before `controls.set_webhook_endpoint`."""
        super().__init__(directory, log_directory, {**os.environ, "PYTHONPATH": str(TOOLS / "stripe_double")})
        self._host = host
        self._port = free_port()

    def command(self) -> list[str]:
        """Return the foreground server."""
        place = ["--host", self._host, "--port", str(self._port), "--data", str(self.directory)]
        keys = ["--secret-key", self.secret_key]
        return [sys.executable, "-m", "stripe_double", *place, *keys]

    def answers(self) -> bool:
        """Return whether it takes requests."""
        return status_of(f"{self.url}/healthz") == 200

    @property
    def url(self) -> str:
        """The base URL for Stripe's SDK."""
        return f"http://{self._host}:{self._port}"

    @property
    def secret_key(self) -> str:
        """The account's secret key."""
        return self._keys["secret_key"]

    @property
    def publishable_key(self) -> str:
        """The publishable key."""
        return publishable_key(self.secret_key)

    @property
    def webhook_secret(self) -> str:
        """The webhook secret."""
        return self._keys["webhook_secret"]

    @property
    def controls(self) -> ControlClient:
        """The client of the control API."""
        return ControlClient(self.url, self.secret_key)

    @property
    def _keys(self) -> dict[str, str]:
        path = self.directory / "keys.json"
        if not path.exists():
            made = {
                "secret_key": f"sk_test_{secrets.token_hex(24)}",
                "webhook_secret": f"whsec_{secrets.token_hex(24)}",
            }
            write_json(path, made)
        return read_json(path)
