"""More calls at once than the balance affords: exactly the affordable ones are accepted."""

from functools import partial

import pytest

from tests.journeys.stack import Stack
from tests.journeys.waiting import at_once

pytestmark = pytest.mark.journey

AFFORDABLE, SENT = 10, 40


def test_of_forty_concurrent_calls_exactly_the_ten_affordable_are_accepted(stack: Stack) -> None:
    person, sampler = stack.newcomers(2)
    profile = person.profile.profile_address
    with stack.chain.paused():
        sampler.accepted(sampler.new_call())
        (sample,) = stack.records.calls(sampler.profile.profile_address)
        surplus = stack.records.account(profile).balance - AFFORDABLE * sample.held - sample.held // 2
        stack.adjust(profile, -surplus)
        bodies = [person.new_call(channel=channel) for channel in range(SENT)]

        responses = at_once([partial(person.execute_until_served, body) for body in bodies])

        accepted = {response.body["transactionHash"] for response in responses if response.status == 200}
        refusals = [response for response in responses if response.status != 200]
        assert (len(accepted), len(refusals)) == (AFFORDABLE, SENT - AFFORDABLE)
        assert {(response.status, response.body["code"]) for response in refusals} == {
            (402, "insufficient-credits")
        }
        calls = stack.records.calls(profile)
        account = stack.records.account(profile)
        assert {call.transaction_hash for call in calls} == accepted
        assert max(call.held for call in calls) - min(call.held for call in calls) <= 1
        assert account.held == sum(call.held for call in calls)
        assert 0 <= account.balance - account.held < sample.held

    endings = [person.ending(transaction_hash) for transaction_hash in accepted]
    mined = stack.chain.mined(*accepted)
    assert {ending["status"] for ending in endings} == {"Success"}
    assert sorted(stack.records.charges(profile)) == sorted(item.credits for item in mined)
    assert stack.records.account(profile).held == 0
