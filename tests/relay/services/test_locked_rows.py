"""A row that another transaction keeps locked delays only the calls that need it; one it refuses leaves nothing."""

import random
from collections.abc import Callable
from functools import partial

import pytest

from credits.models import CreditAccount, CreditHold
from credits.services.reconciliation import find_differences
from devstack.services.stack import Services
from devstack.world.profiles import ControllerPlan, Profile, ProfilePlan
from gateway.chain.client import get_chain_client
from gateway.common.errors import ServiceUnavailable
from relay.errors import RelayersBusy
from relay.models import Attempt, Relayer, RelayTransaction
from relay.services.accepting import acceptance, contention
from relay.services.accepting.calls import Step
from relay.services.accepting.contention import Lines
from relay.services.accepting.together import Progress
from relay.services.sending import gaps
from relay.services.settling import settlement
from tests.credits.rows import query
from tests.relay.callers import begin, finish, pass_together
from tests.relay.chain import Chain
from tests.relay.signing import sign_call
from tests.relay.workers import broadcast_all, later, track
from tests.threads import at_once, locked_elsewhere
from users.models import User

pytestmark = pytest.mark.django_db(transaction=True)
Callers = list[tuple[User, Profile]]
LOCK_ACCOUNT = "SELECT FROM credits_account WHERE user_id = %s FOR UPDATE"
LOCK_RELAYER = "SELECT FROM relay_relayer WHERE id = %s FOR UPDATE"


@pytest.fixture(autouse=True)
def _no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance, "_lines", Lines())


@pytest.fixture
def callers(
    services: Services, open_account: Callable[..., User], trusted: None, relayers: list[Relayer]
) -> Callers:
    """Four users, each with a profile and plenty of credits."""
    profiles = services.world.create_profiles(*(ProfilePlan([ControllerPlan()]) for _ in range(4)))
    return [(open_account(profile), profile) for profile in profiles]


class Calls:
    """A call of each caller, and another in the next channel, and so on."""

    def __init__(self, services: Services, callers: Callers) -> None:
        self._services, self._callers = services, callers
        self._count = 0

    def together(self) -> list[object]:
        """Hand the next call of each in as one batch; return the outcomes, or calls that wait alone."""
        calls = [
            sign_call(services=self._services, profile=profile, channel=self._count)
            for _, profile in self._callers
        ]
        self._count += 1
        progresses = [begin(user, call) for (user, _), call in zip(self._callers, calls, strict=True)]
        return [one.result or one for one in pass_together(*progresses)]


def alone(outcome: object) -> object:
    """Return the hash or the error of a call that was lined up."""
    assert isinstance(outcome, Progress)
    assert outcome.call.ticket is not None
    return finish(outcome)


def test_a_locked_account_refuses_its_own_calls_and_no_others(services: Services, callers: Callers) -> None:
    place = random.randrange(len(callers))
    user, _ = callers[place]
    calls = Calls(services, callers)
    with locked_elsewhere(partial(query, LOCK_ACCOUNT, user.pk)):
        outcomes = [alone(outcome) for outcome in calls.together()]
        refusal = outcomes.pop(place)
        assert isinstance(refusal, ServiceUnavailable)
        assert refusal.retry_after
        assert all(isinstance(outcome, str) for outcome in outcomes)
        assert RelayTransaction.objects.count() == Attempt.objects.count() == CreditHold.objects.count() == 3
        assert not RelayTransaction.objects.filter(user=user).exists()

        # From now on its calls stay out of batches, which do not wait for the lock again.
        outcomes = calls.together()
        assert isinstance(alone(outcomes.pop(place)), ServiceUnavailable)
        assert all(isinstance(outcome, str) for outcome in outcomes)

    assert isinstance(alone(calls.together()[place]), str)
    assert all(isinstance(outcome, str) for outcome in calls.together())
    assert CreditAccount.objects.get(user=user).open_holds == 2
    assert CreditHold.objects.count() == RelayTransaction.objects.count() == 3 * 4 + 2
    assert find_differences() == []


def test_calls_of_a_locked_account_wait_in_line_and_occupy_one_connection() -> None:
    lines, line = Lines(), (random.randrange(10**6),)
    first, second, third = (lines.join(line) for _ in range(3))
    order: list[object] = []

    def run(ticket: object) -> None:
        with lines.turn(ticket):  # type: ignore[arg-type]
            order.append(ticket)

    at_once([partial(run, third), partial(run, second), partial(run, first)])
    assert order == [first, second, third]
    assert not lines.has(line)

    first, second = (lines.join(line) for _ in range(2))
    with lines.turn(first):
        lines.note(line, got_lock=False)
        with pytest.raises(ServiceUnavailable), lines.turn(second):
            pass
        assert lines.is_blocked(line)
    assert not lines.is_blocked(line)
    assert lines.has(line)
    third = lines.join(line)
    with lines.turn(third):
        lines.note(line, got_lock=True)
    assert not lines.has(line)


def test_a_locked_account_delays_no_other_settlement(
    services: Services, callers: Callers, chain: Chain
) -> None:
    calls = Calls(services, callers)
    assert all(isinstance(outcome, str) for outcome in calls.together())
    broadcast_all()
    chain.mine(10)
    user, _ = random.choice(callers)
    with locked_elsewhere(partial(query, LOCK_ACCOUNT, user.pk)):
        assert track() == 3
        row = RelayTransaction.objects.exclude(status="Success").get()
        assert (row.user, row.status) == (user, "Submitted")
        # The others of the next block are settled together, without this one.
        assert track() == 0
        assert list(settlement._locked_before) == [row.pk]
    chain.mine()
    assert track() == 1
    assert not settlement._locked_before
    assert find_differences() == []


def test_a_locked_relayer_delays_neither_settlement_nor_the_others(
    services: Services, callers: Callers, chain: Chain
) -> None:
    calls = Calls(services, callers)
    assert all(isinstance(outcome, str) for outcome in calls.together())
    broadcast_all()
    chain.mine(10)
    locked = random.choice(list(Relayer.objects.filter(attempts__isnull=False)))
    with locked_elsewhere(partial(query, LOCK_RELAYER, locked.pk)):
        assert track(now=later(60)) == 4
        # Its row does not know that they are mined.
        assert gaps.find_gaps(head=get_chain_client().head()) == []
        assert Relayer.objects.get(pk=locked.pk).mined_account_nonce == locked.mined_account_nonce
        others = [outcome for outcome in calls.together() if isinstance(outcome, str)]
        assert len(others) == 4
        assert not RelayTransaction.objects.filter(transaction_hash__in=others, relayer=locked).exists()
    chain.mine()
    track(now=later(120))
    assert Relayer.objects.get(pk=locked.pk).mined_account_nonce > locked.mined_account_nonce
    assert find_differences() == []


def test_a_follower_of_a_locked_relayer_is_refused_and_other_channels_continue(
    services: Services, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contention, "RELAYER_MILLISECONDS", 100)
    calls = Calls(services, callers)
    assert all(isinstance(outcome, str) for outcome in calls.together())
    user, profile = random.choice(callers)
    first = RelayTransaction.objects.get(user=user)

    def lined_up() -> Progress:
        follower = begin(user, sign_call(services=services, profile=profile, ahead=1))
        pass_together(follower)
        assert follower.step is Step.ALONE
        follower.resume()
        return pass_together(follower)[0]

    with locked_elsewhere(partial(query, LOCK_RELAYER, first.relayer_id)):
        for _ in range(2):
            assert isinstance(alone(lined_up()), ServiceUnavailable)
        assert RelayTransaction.objects.count() == CreditHold.objects.count() == len(callers)
        assert all(isinstance(outcome, str) for outcome in calls.together())
    assert isinstance(alone(lined_up()), str)
    assert find_differences() == []


def test_if_every_relayer_is_locked_calls_get_the_error_of_full_relayers(
    services: Services, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contention, "RELAYER_MILLISECONDS", 100)
    calls = Calls(services, callers)
    with locked_elsewhere(partial(query, "SELECT FROM relay_relayer ORDER BY id FOR UPDATE")):
        assert all(isinstance(outcome, RelayersBusy) for outcome in calls.together())
        assert CreditHold.objects.count() == 0
    assert all(isinstance(outcome, str) for outcome in calls.together())
    assert find_differences() == []
