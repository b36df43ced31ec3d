"""Many postbacks of all networks, a third of them repeats, in any order and at once: everybody has what a model has."""

import random
import secrets
from collections import Counter
from functools import partial

from django.utils import timezone

from devstack.ad_networks.plan import make_plan
from devstack.ad_networks.sending import send
from devstack.ad_networks.stage import faults, set_stage, written
from tests.factories import UserFactory
from tests.threads import at_once

_THREADS, _POSTBACKS = 8, 400


def test_shuffled_postbacks_from_8_threads_leave_what_the_model_has(transactional_db: None) -> None:
    rng, now = random.Random(secrets.randbits(64)), timezone.now()
    stage = set_stage([UserFactory.create() for _ in range(6)], now=now)
    plan = make_plan(rng, count=_POSTBACKS, references=stage.references, rates=stage.rates, now=now)
    wire = [written(stage, said) for said in plan.said]

    answers = at_once([partial(send, wire[part::_THREADS]) for part in range(_THREADS)])

    assert answers == [Counter({"200": _POSTBACKS // _THREADS})] * _THREADS
    assert plan.distinct == round(_POSTBACKS * 0.7)
    assert sum(plan.credits) > 0
    assert faults(stage, plan, now=now) == []
