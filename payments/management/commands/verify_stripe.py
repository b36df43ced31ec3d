"""
`manage.py verify_stripe`: run the contract suite of the Stripe double against a Stripe account in test mode.

VERIFIED_STRIPE_KEY selects the account; if it is not set, the key of the settings does. The suite is
`tools/stripe_double/tests/contract`, so the command needs a checkout of the repository. It creates products and
customers, most of them on test clocks; delete the clocks in Stripe's dashboard afterwards.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from payments.stripe.client import TEST_PREFIXES

_SUITE = "tools/stripe_double/tests/contract"
_STRIPE = "https://api.stripe.com"


class Command(BaseCommand):
    help = "Hold the contract of the Stripe double against a Stripe account in test mode; print what differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--only", default="", help="part of a test's name, as for pytest's -k")

    def handle(self, *args: Any, **options: Any) -> None:
        key, base = _account()
        if not key:
            raise CommandError(
                "Set VERIFIED_STRIPE_KEY to a secret key (sk_test_…) of any account's test mode."
            )
        if not key.startswith(TEST_PREFIXES):
            raise CommandError("This needs a key of Stripe's test mode; a live one is refused.")
        if not (settings.BASE_DIR / _SUITE).is_dir():
            raise CommandError(f"Run this from a checkout: {_SUITE} was not found.")
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            _run_suite(key, base, options["only"], report)
            held, differences = _read(report)
        for name, message in differences:
            self.stdout.write(f"differs: {name}: {message}")
        self.stdout.write(f"{base}: {held} held, {len(differences)} differ.")
        if differences or not held:
            raise CommandError("The double and this account behave differently.")


def _account() -> tuple[str, str]:
    key = os.environ.get("VERIFIED_STRIPE_KEY", "")
    if key:
        return key, os.environ.get("VERIFIED_STRIPE_BASE", _STRIPE)
    return settings.STRIPE_SECRET_KEY, settings.STRIPE_API_BASE


def _run_suite(key: str, base: str, only: str, report: Path) -> None:
    environment = {
        **os.environ,
        "VERIFIED_STRIPE_KEY": key,
        "VERIFIED_STRIPE_BASE": base,
        "STRIPE_CONTRACT_ACCOUNTS": "stripe",
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    command = [sys.executable, "-m", "pytest", "-n0", "-q", f"--junit-xml={report}", "-p", "no:cacheprovider"]
    result = subprocess.run(  # noqa: S603 (our own interpreter; `only` is the operator's)
        [*command, *(["-k", only] if only else []), _SUITE],
        cwd=settings.BASE_DIR,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    if not report.exists():
        raise CommandError(f"The suite did not run: {(result.stdout + result.stderr)[-2000:]}")


def _read(report: Path) -> tuple[int, list[tuple[str, str]]]:
    """Return how many tests passed, and the name and message of each of the others."""
    held, differences = 0, []
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 (written by our own pytest)
        fault = next((child for child in case if child.tag in {"failure", "error"}), None)
        if fault is None:
            held += 1
        else:
            message = (fault.get("message") or "").splitlines()
            differences.append((case.get("name", ""), message[0][:300] if message else "failed"))
    return held, differences
