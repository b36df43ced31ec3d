"""The comparison with stripe-mock: requests, comparisons, and the response where the program is absent."""

import pytest

from devstack.services.stack import Services
from lab.stripe_mock import run
from lab.stripe_mock.calls import Calls
from lab.stripe_mock.shapes import differences, shapes_of


def test_every_adapter_call_runs_and_every_list_reads_the_next_page(services: Services) -> None:
    calls = Calls(services.stripe)

    calls.run()

    assert calls.missed() == []
    lists = {one.path for one in calls.recorder.exchanges if "starting_after" in one.query}
    assert {"/v1/customers", "/v1/subscriptions", "/v1/invoices", "/v1/refunds", "/v1/events"} <= lists


def test_a_statement_that_never_ran_is_named(services: Services) -> None:
    calls = Calls(services.stripe)

    with calls.lines.traced():
        calls.subscribe(calls.customer())

    missed = calls.missed()
    assert "refunds.create" in missed
    assert "subscriptions.create" not in missed
    assert any("self._v1.refunds.create(parameters, options)" in line for line in missed)
    assert not any("self._v1.subscriptions.create" in line for line in missed)


def test_without_the_program_the_command_explains_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")

    assert run.run(run.Options("")) == 2

    assert "go install github.com/stripe/stripe-mock" in capsys.readouterr().out


def test_members_and_types_are_compared_inside_objects_of_the_same_kind() -> None:
    ours = {"object": "charge", "id": "ch_1", "paid": True, "card": {"last4": "4242"}, "note": None}
    theirs = {
        "object": "charge",
        "id": "ch_2",
        "paid": "yes",
        "card": {"last4": "1", "brand": "visa"},
        "note": "x",
    }
    page = {"object": "list", "data": [theirs], "has_more": False, "url": "/v1/charges"}

    found = differences(shapes_of([ours]), shapes_of([page, {"object": "refund", "id": "re_1"}]))

    assert found == ["charge.card.brand: only at stripe-mock", "charge.paid: boolean, at stripe-mock text"]


def test_an_empty_list_and_null_are_not_compared() -> None:
    ours: dict[str, object] = {"object": "charge", "refunds": [], "outcome": None}
    theirs = {"object": "charge", "refunds": [{"amount": 1}], "outcome": {"type": "authorized"}}

    assert differences(shapes_of([ours]), shapes_of([theirs])) == []
