"""The node stalls for a while."""

import pytest

from tests.journeys.stack import Stack, thaw

pytestmark = pytest.mark.journey


def test_while_the_node_is_away_accepted_calls_wait_and_new_ones_are_refused_with_nothing_held(
    stack: Stack,
) -> None:
    person, late = stack.newcomers(2)
    body = late.new_call()
    before = stack.records.account(late.profile.profile_address)
    with stack.frozen(stack.worker):
        transaction_hash = person.accepted(person.new_call())
        with stack.frozen(stack.node):
            thaw(stack.worker)
            stack.until_node_gets_request()
            refused = late.execute(body)
            assert (refused.status, refused.body["code"]) == (503, "chain-unavailable")
            assert refused.retry_after
            assert person.status(transaction_hash)["status"] == "Pending"
    assert stack.records.calls(late.profile.profile_address) == []
    assert stack.records.account(late.profile.profile_address) == before

    assert person.ending(transaction_hash)["status"] == "Success"
    assert late.ending(late.accepted_in_the_end(body))["status"] == "Success"
