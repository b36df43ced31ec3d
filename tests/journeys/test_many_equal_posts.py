"""The same call handed in many times at once is one call."""

from functools import partial

import pytest

from tests.journeys.people import Person
from tests.journeys.stack import Stack
from tests.journeys.waiting import at_once

pytestmark = pytest.mark.journey


def test_twenty_equal_posts_get_one_hash_one_transaction_and_one_charge(stack: Stack, person: Person) -> None:
    profile, since = person.profile, stack.chain.height
    before = stack.records.account(profile.profile_address).balance
    body = person.new_call()

    responses = at_once([partial(person.execute_until_served, body)] * 20)

    assert {response.status for response in responses} == {200}
    (transaction_hash,) = {response.body["transactionHash"] for response in responses}
    ending = person.ending(transaction_hash)
    assert ending["status"] == "Success"
    assert stack.chain.sent_to(profile.key_manager_address, since=since) == [transaction_hash]
    (mined,) = stack.chain.mined(transaction_hash)
    assert stack.records.charges(profile.profile_address) == [mined.credits] == [ending["creditsUsed"]]
    account = stack.records.account(profile.profile_address)
    assert (account.balance, account.held) == (before - mined.credits, 0)
    assert person.accepted(body) == transaction_hash
    assert len(stack.records.calls(profile.profile_address)) == 1
