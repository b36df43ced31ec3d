"""Any sequence of moves leaves the rows that the reference model has."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from pytest_django import Settings

from credits.models import EntrySource
from credits.services.reconciliation import find_differences
from tests.credits.causes import causeless
from tests.economy.machine import EconomyMachine
from tests.economy.setup import set_up

pytestmark = pytest.mark.django_db


def test_any_sequence_of_moves_leaves_the_rows_of_the_model(settings_of_django: Settings) -> None:
    unlimited = dict.fromkeys(settings_of_django.APPROVAL_LIMITS["credits"], 10**12)
    settings_of_django.APPROVAL_LIMITS = {"credits": {**unlimited, "person": 100}}
    EconomyMachine.setup = set_up()
    run_state_machine_as_test(
        EconomyMachine,
        settings=settings(
            max_examples=4, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
    assert find_differences() == []
    assert causeless(*EntrySource) == []


@pytest.fixture
def settings_of_django(settings: Settings) -> Settings:
    return settings
