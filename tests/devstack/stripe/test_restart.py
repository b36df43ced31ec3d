"""The double as a server: random keys, kept data, an orderly and a sudden end."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import stripe

from devstack.services.stripe_double import StripeDouble
from devstack.stripe.client import ControlClient, ControlError
from tests.devstack.stripe.mailbox import Mailbox
from tests.devstack.stripe.worlds import DAY, HOUR, DoubleWorld


def test_keys_are_random_per_folder_and_kept_in_it(tmp_path: Path) -> None:
    one, again, other = (StripeDouble(tmp_path / name, tmp_path) for name in ("a", "a", "b"))
    assert one.secret_key == again.secret_key != other.secret_key
    assert one.webhook_secret == again.webhook_secret != other.webhook_secret
    assert one.secret_key.startswith("sk_test_")
    assert one.publishable_key.startswith("pk_test_")
    assert (tmp_path / "a" / "keys.json").stat().st_mode & 0o077 == 0


def test_a_killed_double_goes_on_where_it_was(tmp_path: Path, mailbox_server: Mailbox, amount: int) -> None:
    mailbox_server.clear()
    double = StripeDouble(tmp_path / "data", tmp_path)
    with double.running():
        here = DoubleWorld(double)
        double.controls.advance(100 * DAY)
        subscription = here.subscribe(here.new_payer(), amount)
        key: Any = {"idempotency_key": "once"}
        customer = here.v1.customers.create({"name": "Once"}, key)
        before = double.controls.now
        os.kill(double.pid, signal.SIGKILL)
    with double.running():
        here = DoubleWorld(double)
        assert before <= double.controls.now < before + HOUR
        assert here.v1.customers.create({"name": "Once"}, key).id == customer.id
        double.controls.advance(32 * DAY)
        assert [it.amount_paid for it in here.invoices(subscription)] == [amount, amount]


def test_what_was_not_delivered_before_a_restart_is_delivered_after_it(
    tmp_path: Path, mailbox_server: Mailbox
) -> None:
    mailbox_server.clear()
    mailbox_server.answers = lambda post: 500
    double = StripeDouble(tmp_path / "data", tmp_path, webhook_url=mailbox_server.url)
    secret, mailbox_server.secret = mailbox_server.secret, double.webhook_secret
    try:
        with double.running():
            DoubleWorld(double).v1.customers.create()
            double.controls.settle()
        mailbox_server.clear()
        with double.running():
            double.controls.advance(HOUR)
        assert mailbox_server.types == ["customer.created"]
    finally:
        mailbox_server.secret = secret


def test_the_controls_open_only_to_the_secret_key(double: StripeDouble) -> None:
    for key in ("sk_test_other", double.publishable_key):
        with pytest.raises(ControlError):
            ControlClient(double.url, key).advance(1)


def test_a_browser_may_confirm_with_the_publishable_key_and_the_client_secret(
    double: StripeDouble, here: DoubleWorld
) -> None:
    intent = here.v1.setup_intents.create({"customer": here.new_customer().id})
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


def test_another_api_version_is_refused(double: StripeDouble) -> None:
    client = stripe.StripeClient(
        double.secret_key, base_addresses={"api": double.url}, stripe_version="2026-08-26.dahlia"
    )
    with pytest.raises(stripe.InvalidRequestError):
        client.v1.customers.list()
