"""Keys and API version, and what the double may import."""

import ast
import sys
from pathlib import Path
from typing import Any

import pytest
import stripe

import stripe_double
from accounts import DoubleAccount
from double_process import DoubleProcess
from stripe_double.client import ControlClient, ControlError


def test_the_control_api_needs_the_secret_key(double: DoubleProcess) -> None:
    for key in ("sk_test_other", double.publishable_key):
        with pytest.raises(ControlError):
            ControlClient(double.url, key).advance(1)


def test_a_browser_may_confirm_with_the_publishable_key_and_the_client_secret(
    double: DoubleProcess, account: DoubleAccount
) -> None:
    intent = account.v1.setup_intents.create({"customer": account.create_customer().id})
    browser = stripe.StripeClient(double.publishable_key, base_addresses={"api": double.url}).v1
    card: Any = {"payment_method": "pm_card_visa", "return_url": "https://wallet.example/back"}
    wrong: Any = {**card, "client_secret": f"{intent.id}_secret_guess"}
    right: Any = {**card, "client_secret": intent.client_secret}
    with pytest.raises(stripe.AuthenticationError):
        browser.setup_intents.confirm(intent.id, card)
    with pytest.raises(stripe.InvalidRequestError):
        browser.setup_intents.confirm(intent.id, wrong)
    done = browser.setup_intents.confirm(intent.id, right)
    assert done.status == "succeeded"
    with pytest.raises(stripe.AuthenticationError):
        browser.customers.list()


def test_another_api_version_is_refused(double: DoubleProcess) -> None:
    client = stripe.StripeClient(
        double.secret_key, base_addresses={"api": double.url}, stripe_version="2026-08-26.dahlia"
    )
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.customers.list()


def test_the_double_imports_only_itself_the_standard_library_and_urllib3() -> None:
    sources = Path(stripe_double.__file__).parent.rglob("*.py")
    imported = {name for path in sources for name in imports(path)}
    outside = {name for name in imported if not name.startswith("stripe_double.")}
    assert {name.split(".")[0] for name in outside} - sys.stdlib_module_names == {"urllib3"}


def imports(path: Path) -> set[str]:
    """Return the modules that a file imports from."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(f"{node.module}.")
    return names
