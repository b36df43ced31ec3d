"""The same order handed in many times at once is one customer, one subscription, one charge."""

import random

import pytest

from tests.journeys.billing import Payer
from tests.journeys.people import Person
from tests.journeys.stack import Stack
from tests.journeys.waiting import at_once

pytestmark = pytest.mark.journey


def test_twenty_equal_orders_are_one_customer_and_one_subscription(stack: Stack, person: Person) -> None:
    payer = Payer(person, stack, amount=random.randint(500, 50_000))
    stack.provider.controls.duplicate(times=3, count=None)

    responses = at_once([payer.create_customer] * 20)

    assert {response.status for response in responses} == {200}
    assert len({response.body["paymentsCustomerId"] for response in responses}) == 1
    payer.with_card()

    responses = at_once([payer.upsert] * 20)

    assert {response.status for response in responses} == {200}
    assert len({tuple(sorted(response.body.items())) for response in responses}) == 1
    payer.assert_settled()
