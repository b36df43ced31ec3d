"""The permissions of a restricted key in docs/deployment.md are those of the requests that the code makes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import DOCS

ADAPTER = Path(__file__).parents[3] / "payments" / "stripe"
# Stripe's name of the permission for each of the SDK's services.
PERMISSIONS = {
    "balance_transactions": "Balance transactions",
    "billing_portal.configurations": "Customer portal",
    "billing_portal.sessions": "Customer portal",
    "charges": "Charges and refunds",
    "checkout.sessions": "Checkout sessions",
    "credit_notes": "Credit notes",
    "customers": "Customers",
    "customers.payment_methods": "Payment methods",
    "disputes": "Disputes",
    "events": "Events",
    "invoice_items": "Invoices",
    "invoice_payments": "Invoices",
    "invoices": "Invoices",
    "invoices.line_items": "Invoices",
    "payment_intents": "Payment intents",
    "products": "Products",
    "radar.early_fraud_warnings": "Early fraud warnings",
    "refunds": "Charges and refunds",
    "setup_intents": "Setup intents",
    "subscription_items": "Subscriptions",
    "subscriptions": "Subscriptions",
    "tax.settings": "Tax settings",
    "webhook_endpoints": "Webhook endpoints",
}
READS = {"retrieve", "list", "create_preview"}
# Stripe makes a price for each `price_data`.
WITHOUT_A_CALL = {"Prices": "write"}


def _chains(tree: ast.AST) -> Iterator[str]:
    """Yield what follows `self._v1` wherever it stands, such as `invoices.line_items.list`."""
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for found in ast.walk(tree):
        names: list[str] = []
        node: ast.AST | None = found if id(found) not in inner else None
        while isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        if "_v1" in names and isinstance(node, ast.Name) and node.id == "self":
            yield ".".join(names[names.index("_v1") + 1 :])


def _accesses() -> dict[str, str]:
    """Return the access that each permission needs."""
    needed: dict[str, str] = dict(WITHOUT_A_CALL)
    for path in ADAPTER.glob("*.py"):
        for chain in filter(None, _chains(ast.parse(path.read_text()))):
            # A service alone is one of which a list is read.
            service, _, method = (chain, "", "list") if chain in PERMISSIONS else chain.rpartition(".")
            permission = PERMISSIONS[service]
            if method not in READS or needed.get(permission) == "write":
                needed[permission] = "write"
            else:
                needed[permission] = "read"
    return needed


def test_the_page_lists_exactly_the_permissions_that_the_code_needs() -> None:
    listed = dict(
        re.findall(r"^ +\| `([^`]+)` \| (read|write) \|$", (DOCS / "deployment.md").read_text(), re.MULTILINE)
    )
    assert listed == _accesses()
