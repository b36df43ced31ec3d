"""Persistence: transactions, and an account after a restart."""

from pathlib import Path
from typing import Any

import pytest

from accounts import DAY, HOUR, DoubleAccount
from double_process import DoubleProcess
from stripe_double.store import CommittingError, Store
from webhook_receiver import WebhookReceiver


def names(store: Store) -> list[str]:
    """Return the names of the resources, in their order."""
    return [resource["name"] for resource in store.all("resource")]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store with two resources."""
    store = Store(tmp_path / "store.sqlite3")
    with store.transaction():
        for number in (1, 2):
            store.add({"object": "resource", "id": str(number), "name": f"old {number}"})
    return store


def change_everything(store: Store, ending: Exception | None = None) -> None:
    """Change one resource, remove another and add a third; then raise the error, if any."""
    changed = store.get("resource", "1")
    assert changed is not None
    changed["name"] = "new 1"
    store.remove("resource", "2")
    store.add({"object": "resource", "id": "3", "name": "new 3"})
    if ending is not None:
        raise ending


def test_a_failed_transaction_changes_nothing_and_sends_no_notification(store: Store, tmp_path: Path) -> None:
    notified: list[str] = []
    store.on_change(lambda kind, identifier, resource: notified.append(identifier))
    with pytest.raises(ZeroDivisionError), store.transaction(), store.transaction():
        change_everything(store, ending=ZeroDivisionError())
    assert sorted(names(store)) == names(Store(tmp_path / "store.sqlite3")) == ["old 1", "old 2"]
    assert notified == []


def test_a_committing_error_keeps_what_was_done_before_it(store: Store, tmp_path: Path) -> None:
    with pytest.raises(CommittingError), store.transaction():
        change_everything(store, ending=CommittingError())
    assert names(store) == names(Store(tmp_path / "store.sqlite3")) == ["new 1", "new 3"]


def test_listeners_are_notified_of_changes_and_removals(store: Store) -> None:
    notified: dict[str, str | None] = {}
    store.on_change(
        lambda kind, identifier, resource: notified.update(
            {identifier: resource["name"] if resource else None}
        )
    )
    with store.transaction():
        change_everything(store)
    assert notified == {"1": "new 1", "2": None, "3": "new 3"}
    with store.transaction():
        store.clear()
    assert (names(store), notified) == ([], {"1": None, "2": None, "3": None})


def test_a_killed_double_continues_after_a_restart(
    tmp_path: Path, webhook_server: WebhookReceiver, amount: int
) -> None:
    webhook_server.clear()
    double = DoubleProcess(tmp_path / "data")
    with double.running():
        account = DoubleAccount(double)
        double.controls.advance(100 * DAY)
        subscription = account.subscribe(account.create_paying_customer(), amount)
        key: Any = {"idempotency_key": "once"}
        customer = account.v1.customers.create({"name": "Once"}, key)
        before = double.controls.now
        double.kill()
    with double.running():
        account = DoubleAccount(double)
        assert before <= double.controls.now < before + HOUR
        assert account.v1.customers.create({"name": "Once"}, key).id == customer.id
        double.controls.advance(32 * DAY)
        assert [item.amount_paid for item in account.invoices(subscription)] == [amount, amount]


def test_undelivered_webhooks_are_delivered_after_a_restart(
    tmp_path: Path, webhook_server: WebhookReceiver
) -> None:
    webhook_server.clear()
    webhook_server.status_for = lambda post: 500
    double = DoubleProcess(tmp_path / "data")
    with double.running():
        double.controls.set_webhook_endpoint(webhook_server.url, webhook_server.secret)
        DoubleAccount(double).v1.customers.create()
        double.controls.settle()
    webhook_server.clear()
    with double.running():
        double.controls.advance(HOUR)
    assert webhook_server.types == ["customer.created"]
