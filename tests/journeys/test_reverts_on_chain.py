"""A call that the simulation found good and the chain did not."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.journeys.people import Person, a_call_to
from tests.journeys.stack import Stack

pytestmark = pytest.mark.journey


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """A thread for a waiting caller."""
    with ThreadPoolExecutor(1) as waiting:
        yield waiting


def test_a_call_that_reverts_in_its_block_is_charged_the_gas_it_burned_and_no_more(
    stack: Stack, person: Person, pool: ThreadPoolExecutor
) -> None:
    profile, target = person.profile.profile_address, stack.services.world.deploy_flaky()
    before = stack.records.account(profile).balance
    body = person.signed(a_call_to(target.address))
    with stack.chain.paused():
        with stack.frozen(stack.worker):
            transaction_hash = person.accepted(body)
            held = stack.records.account(profile).held
            target.flip()
        stack.until_sent(profile)
        assert stack.records.account(profile).held == held > 0
        waiting = pool.submit(person.api.ask, f"/api/relay/transactions/{transaction_hash}?wait=20")

    ending = person.ending(transaction_hash)
    waited = waiting.result().body
    if stack.web.interface == "rsgi":
        assert waited == ending
    else:  # `gateway.wsgi` responds to `wait` at once
        assert waited["status"] == "Submitted"

    (mined,) = stack.chain.mined(transaction_hash)
    (call,) = stack.records.calls(profile)
    assert not mined.succeeded
    assert target.successes == 0
    assert (ending["status"], ending["creditsUsed"]) == ("Failed", mined.credits)
    assert (ending["creditsBefore"], ending["creditsAfter"]) == (before, before - mined.credits)
    assert (call.hold, call.captured, call.real_cost) == ("CAPTURED", mined.credits, mined.credits)
    assert 0 < mined.credits < held
    assert stack.records.charges(profile) == [mined.credits]
    account = stack.records.account(profile)
    assert (account.balance, account.held) == (before - mined.credits, 0)

    target.flip()
    again = person.accepted(body)
    assert again != transaction_hash
    assert person.ending(again)["status"] == "Success"
    assert target.successes == 1
