"""Two workers and two clocks do the work of one."""

from functools import partial

import pytest

from tests.journeys.stack import SecondBeat, SecondWorker, Stack
from tests.journeys.waiting import at_once

pytestmark = pytest.mark.journey

PEOPLE, CALLS = 8, 4


def test_two_workers_and_two_clocks_send_once_and_charge_once(stack: Stack) -> None:
    people, since = stack.newcomers(PEOPLE), stack.chain.height
    worker = SecondWorker(stack.logs, stack.environment)
    with stack.joined_by(worker, SecondBeat(stack.logs, stack.environment)):
        calls = [(person, person.new_call(channel=channel)) for channel in range(CALLS) for person in people]

        hashes = at_once([partial(person.accepted_in_the_end, body) for person, body in calls * 2])

        assert hashes[: len(calls)] == hashes[len(calls) :]
        endings = [
            person.ending(transaction_hash)
            for (person, _), transaction_hash in zip(calls, hashes, strict=False)
        ]
        assert {ending["status"] for ending in endings} == {"Success"}

        # The second one takes over what the first can do no more.
        stack.kill(stack.worker)
        (person, *_), channel = people, CALLS
        transaction_hash = person.accepted(person.new_call(channel=channel))
        assert person.ending(transaction_hash)["status"] == "Success"
        stack.restart(stack.worker)
    people = people[1:]
    for person in people:
        of_person = {
            transaction_hash
            for (owner, _), transaction_hash in zip(calls, hashes, strict=False)
            if owner is person
        }
        sent = stack.chain.sent_to(person.profile.key_manager_address, since=since)
        assert (len(sent), set(sent)) == (CALLS, of_person)
        costs = sorted(item.credits for item in stack.chain.mined(*sent))
        assert sorted(stack.records.charges(person.profile.profile_address)) == costs
        assert stack.records.account(person.profile.profile_address).held == 0
