"""Many postbacks of all networks at the same moment, a third of them repeats, give everybody the model's credits."""

import random
import secrets
from collections import Counter
from functools import partial

from django.utils import timezone

from tests.earnings.postback_model import differences, make_plan, send, set_up_networks, signed_request
from tests.factories import UserFactory
from tests.threads import at_once

_THREADS, _POSTBACKS = 8, 160


def test_shuffled_postbacks_from_8_threads_give_the_credits_of_the_model(transactional_db: None) -> None:
    rng, now = random.Random(secrets.randbits(64)), timezone.now()
    setup = set_up_networks([UserFactory.create() for _ in range(6)], now=now)
    plan = make_plan(setup, rng, count=_POSTBACKS, now=now)
    requests = [signed_request(setup, postback) for postback in plan.postbacks]

    results = at_once([partial(send, requests[part::_THREADS]) for part in range(_THREADS)])

    assert results == [Counter({200: _POSTBACKS // _THREADS})] * _THREADS
    assert plan.distinct == round(_POSTBACKS * 0.7)
    assert sum(plan.credits) > 0
    assert differences(setup.users, plan, now=now) == []
