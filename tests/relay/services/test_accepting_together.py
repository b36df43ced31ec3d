"""Calls of several users that are accepted in one transaction."""

import random
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone
from pytest_django import Settings

from credits.errors import InsufficientCredits
from credits.models import CreditAccount, CreditHold
from credits.services import entries
from credits.services.reconciliation import find_differences
from devstack.services.stack import Services
from devstack.world.profiles import ControllerPlan, Profile, ProfilePlan
from gateway.chain.errors import NodeUnavailable
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signing import LocalSigner, get_signer
from relay.errors import RelayersBusy, RelayNonceGap, RelayNonceTaken, SignerNotController
from relay.models import Attempt, Relayer, RelayTransaction
from relay.services.accepting import acceptance
from relay.services.accepting.calls import Slot, Step, SubmittedCall
from relay.services.accepting.statements import take_slots
from relay.services.accepting.together import Progress
from signer.transactions import PolicyViolation, SignedTransaction
from sponsors.services.paying import SponsorChoice
from tests.factories import UserFactory
from tests.relay.callers import begin, finish, pass_together
from tests.relay.chain import FaultyClient, node_away
from tests.relay.signing import sign_call
from tests.relay.sponsoring import hold_of
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db
Callers = list[tuple[User, Profile]]


@pytest.fixture
def callers(
    services: Services, open_account: Callable[..., User], trusted: None, relayers: list[Relayer]
) -> Callers:
    """Six users, each with a profile and plenty of credits."""
    profiles = services.world.create_profiles(*(ProfilePlan([ControllerPlan()]) for _ in range(6)))
    return [(open_account(profile), profile) for profile in profiles]


def _together(callers: Callers, calls: list[RelayCall]) -> list[str | Exception]:
    """Hand the calls in as one batch: what threads that wait for each other do, without the threads."""
    return _passed([begin(user, call) for (user, _), call in zip(callers, calls, strict=True)])


def _passed(progresses: list[Progress]) -> list[str | Exception]:
    """Take these through one pass, and those to their end that need more."""
    pass_together(*progresses)
    return [finish(progress) for progress in progresses]


def _calls(services: Services, callers: Callers, *, channel: int = 0) -> list[RelayCall]:
    return [sign_call(services=services, profile=profile, channel=channel) for _, profile in callers]


def test_a_batch_sends_one_request_and_stores_each_call_with_its_own_bytes(
    services: Services, callers: Callers, node: FaultyClient
) -> None:
    calls = _calls(services, callers)
    progresses = [begin(user, call) for (user, _), call in zip(callers, calls, strict=True)]
    node.requests = 0
    hashes = _passed(progresses)
    assert node.requests == 1
    rows = [RelayTransaction.objects.get(transaction_hash=one) for one in hashes]
    assert [row.user for row in rows] == [user for user, _ in callers]
    assert [bytes(row.payload) for row in rows] == [call.payload for call in calls]
    assert {row.attempts.get().transaction_hash for row in rows} == set(hashes)
    for relayer in Relayer.objects.all():
        nonces = sorted(relayer.attempts.values_list("account_nonce", flat=True))
        assert nonces == list(range(relayer.mined_account_nonce, relayer.next_account_nonce))
    assert find_differences() == []


def test_calls_that_are_refused_fail_no_other_and_leave_nothing(services: Services, callers: Callers) -> None:
    poor, early = random.sample(range(len(callers)), 2)
    entries.adjust(
        user=callers[poor][0], credits=-(10**9), key=secrets.token_hex(8), actor=None, reason="test"
    )
    before = {account.user_id: account for account in CreditAccount.objects.all()}
    calls = _calls(services, callers)
    _, profile = callers[early]
    calls[early] = sign_call(services=services, profile=profile, ahead=1)
    outcomes = _together(callers, calls)
    assert isinstance(outcomes[poor], InsufficientCredits)
    assert isinstance(outcomes[early], RelayNonceGap)
    assert sum(isinstance(outcome, str) for outcome in outcomes) == len(callers) - 2
    assert Attempt.objects.count() == CreditHold.objects.count() == len(callers) - 2
    for place in (poor, early):
        account = CreditAccount.objects.get(user=callers[place][0])
        assert (account.held, account.open_holds) == (0, 0)
        assert account.balance == before[account.user_id].balance
    assert find_differences() == []


def test_an_account_is_opened_for_each_user_without_one(
    services: Services, callers: Callers, trusted: None
) -> None:
    _, profile = callers[0]
    nobody = UserFactory.create()
    call = sign_call(services=services, profile=profile)
    progress = begin(nobody, call, profile_address=profile.profile_address)
    assert isinstance(finish(progress), InsufficientCredits)
    assert CreditAccount.objects.get(user=nobody).balance == 0


def test_a_call_that_needs_a_second_node_request_does_not_delay_others(
    services: Services, callers: Callers, node: FaultyClient
) -> None:
    (first, profile), (second, other) = random.sample(callers, 2)
    call = sign_call(services=services, profile=profile)
    assert isinstance(finish(begin(first, call)), str)
    follower = begin(first, sign_call(services=services, profile=profile, ahead=1))
    stranger = begin(
        second, sign_call(services=services, profile=other, private_key="0x" + secrets.token_hex(32))
    )
    fine = begin(second, sign_call(services=services, profile=other))
    node.requests = 0
    pass_together(follower, stranger, fine)
    assert node.requests == 1
    assert [one.step for one in (follower, stranger, fine)] == [Step.ALONE, Step.ALONE, None]
    assert isinstance(fine.result, str)
    assert isinstance(finish(follower), str)
    assert isinstance(finish(stranger), SignerNotController)
    assert Attempt.objects.count() == 3


def test_calls_of_one_channel_are_accepted_one_after_the_other(services: Services, callers: Callers) -> None:
    user, profile = random.choice(callers)
    first, second = (begin(user, sign_call(services=services, profile=profile)) for _ in range(2))
    pass_together(first, second)
    assert isinstance(first.result, str)
    assert second.step is Step.ACCEPTANCE
    assert isinstance(finish(second), RelayNonceTaken)
    assert Attempt.objects.get().transaction_hash == first.result


def test_repeated_calls_are_handled_before_new_ones(services: Services, callers: Callers) -> None:
    user, profile = random.choice(callers)
    first, second, third = (begin(user, sign_call(services=services, profile=profile)) for _ in range(3))
    pass_together(first, second)
    RelayTransaction.objects.update(status="Cancelled", settled_at=timezone.now())
    assert second.step is Step.ACCEPTANCE
    pass_together(third, second)
    assert third.step is Step.ACCEPTANCE
    assert isinstance(second.result, str)


def test_one_pass_refuses_one_call_repeats_one_and_has_a_sponsor_pay_for_one(
    services: Services, callers: Callers
) -> None:
    (poor, first), (other, second), (newcomer, third) = callers[:3]
    entries.adjust(user=poor, credits=-(10**9), key=secrets.token_hex(8), actor=None, reason="test")
    entries.adjust(user=newcomer, credits=-(10**9), key=secrets.token_hex(8), actor=None, reason="test")
    sponsor = make_sponsor()
    make_policy(sponsor)
    known = sign_call(services=services, profile=second)
    earlier = finish(begin(other, known))
    rows = RelayTransaction.objects.count()

    refused = begin(poor, sign_call(services=services, profile=first))
    repeated = begin(other, known)
    sponsored = begin(
        newcomer, sign_call(services=services, profile=third), sponsor=SponsorChoice(sponsor.slug)
    )
    pass_together(refused, repeated, sponsored)

    assert isinstance(finish(refused), InsufficientCredits)
    assert repeated.result == earlier
    row = RelayTransaction.objects.get(transaction_hash=sponsored.result)
    assert (row.user, row.hold.amount) == (newcomer, 0)
    assert hold_of(row).amount == sponsored.call.hold_credits > 0
    assert RelayTransaction.objects.count() == rows + 1
    assert find_differences() == []


def test_calls_of_disconnected_callers_are_not_accepted(services: Services, callers: Callers) -> None:
    progresses = [
        begin(user, call) for (user, _), call in zip(callers, _calls(services, callers), strict=True)
    ]
    staying = set(random.sample(range(len(progresses)), 3))
    pass_together(*progresses, staying=staying)
    assert {place for place, one in enumerate(progresses) if isinstance(one.result, str)} == staying
    assert {row.user_id for row in RelayTransaction.objects.all()} == {
        progresses[place].call.caller.user_id for place in staying
    }
    assert CreditHold.objects.count() == len(staying)


def test_during_a_node_outage_previously_approved_calls_are_accepted(
    services: Services, callers: Callers
) -> None:
    (user, profile), (other, others_profile) = random.sample(callers, 2)
    first, approved = (begin(user, sign_call(services=services, profile=profile)) for _ in range(2))
    pass_together(first, approved)
    RelayTransaction.objects.update(status="Cancelled", settled_at=timezone.now())
    assert approved.step is Step.ACCEPTANCE
    new = begin(other, sign_call(services=services, profile=others_profile))
    with node_away():
        pass_together(new, approved)
    assert isinstance(new.result, NodeUnavailable)
    assert isinstance(approved.result, str)
    assert not RelayTransaction.objects.filter(user=other).exists()


def test_a_call_already_accepted_for_another_account_is_refused(
    services: Services, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (_calls(services, callers[:1])[0] for _ in range(2))
    _together(callers[:1], [first])
    RelayTransaction.objects.update(status="Cancelled", settled_at=timezone.now())

    def meanwhile(calls: Sequence[SubmittedCall], policy: dict[str, Any]) -> list[Slot]:
        slots = take_slots(calls, policy)
        RelayTransaction.objects.update(status="Submitted", settled_at=None)
        return slots

    monkeypatch.setattr(acceptance, "take_slots", meanwhile)
    (outcome,) = _together(callers[:1], [second])
    assert isinstance(outcome, RelayNonceTaken)


def test_the_remaining_account_nonces_go_to_the_same_number_of_calls(
    services: Services, callers: Callers, settings: Settings
) -> None:
    settings.RELAY_MAX_IN_FLIGHT, settings.RELAY_USER_SHARE_PERCENT = 2, 100
    idle = random.choice(Relayer.objects.all())
    Relayer.objects.exclude(pk=idle.pk).update(next_account_nonce=F("next_account_nonce") + 1)
    free_slots = Relayer.objects.count() + 1
    outcomes = _together(callers, _calls(services, callers))
    assert sum(isinstance(outcome, str) for outcome in outcomes) == free_slots < len(callers)
    assert sum(isinstance(outcome, RelayersBusy) for outcome in outcomes) == len(callers) - free_slots
    assert CreditHold.objects.count() == free_slots


def test_relayers_accept_no_more_calls_than_their_balance_pays(services: Services, callers: Callers) -> None:
    first, *others = _calls(services, callers)
    _together(callers[:1], [first])
    spent = Attempt.objects.get()
    one_more = spent.worst_cost_wei * 3 // 2
    Relayer.objects.update(balance_wei=one_more)
    Relayer.objects.filter(pk=spent.relayer_id).update(balance_wei=spent.worst_cost_wei + one_more)
    outcomes = _together(callers[1:], others)
    assert sum(isinstance(outcome, str) for outcome in outcomes) == Relayer.objects.count() < len(others)
    assert (
        sum(isinstance(outcome, RelayersBusy) for outcome in outcomes)
        == len(others) - Relayer.objects.count()
    )


def test_an_error_undoes_the_whole_batch(
    services: Services, callers: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = get_signer()
    assert isinstance(signer, LocalSigner)
    sign = signer.sign
    signed: list[SignedTransaction] = []

    def fail_at_the_third(**arguments: object) -> object:
        if len(signed) == 2:
            raise PolicyViolation("as a test wants it")
        signed.append(sign(**arguments))  # type: ignore[arg-type]
        return signed[-1]

    monkeypatch.setattr(signer, "sign", fail_at_the_third)
    with pytest.raises(PolicyViolation):
        _together(callers, _calls(services, callers))
    assert not RelayTransaction.objects.exists()
    assert not CreditHold.objects.exists()
    assert all(row.next_account_nonce == row.mined_account_nonce for row in Relayer.objects.all())


@pytest.mark.django_db(transaction=True)
def test_concurrent_batches_take_each_account_nonce_once(services: Services, callers: Callers) -> None:
    batches = []
    for _ in range(5):
        people = random.sample(callers, len(callers))
        batches.append(partial(_together, people, _calls(services, people, channel=secrets.randbits(64))))
    outcomes = []
    for result in at_once(batches):
        assert isinstance(result, list)
        outcomes += result
    accepted = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert len(accepted) == Attempt.objects.count() > len(batches)
    assert all(isinstance(outcome, str | RelayersBusy) for outcome in outcomes)
    for relayer in Relayer.objects.all():
        nonces = sorted(relayer.attempts.values_list("account_nonce", flat=True))
        assert nonces == list(range(relayer.mined_account_nonce, relayer.next_account_nonce))
    assert find_differences() == []
