"""Generated people: their rows are what the services would have written, and they come once."""

import secrets
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db.models import F, Sum
from django.utils import timezone

from checkin.models import CheckIn, DailySeed
from checkin.services.verification import verify_day
from credits.models import AdjustmentDecision, AdjustmentRequest, CreditEntry, EntrySource
from credits.services.reconciliation import find_differences
from devstack.ad_networks.demo import enable_networks, serve_verifier_keys
from devstack.population.settling import populate, residents
from devstack.services.stack import Services
from earnings.models import Postback, PostbackState
from gateway.chain.types import Head
from payments.services.reconciliation import ledger
from payments.services.reconciliation.findings import Window
from relay.models import Attempt, Relayer, RelayTransaction
from relay.pricing import cost_in_credits
from relay.services import replacement
from relay.services.replacement import fees_today
from rewards.models import BadgeTrack, ExperienceEntry, Modifier, Progress
from rewards.rules import earned_credits
from users.models import User
from users.services.profiles import user_of_profile

pytestmark = pytest.mark.django_db
# So many that each of the kinds below is among them but once in a million runs.
_PEOPLE = 90
_MADE_ELSEWHERE = {EntrySource.SUBSCRIBED_PAYOUT, EntrySource.PAYOUT_CLAWBACK}
_TABLES: tuple[Any, ...] = (User, CreditEntry, ExperienceEntry, Postback, CheckIn, RelayTransaction, Attempt)


@pytest.fixture
def seed(services: Services) -> str:
    """Let people settle in a service whose ad networks are open; return the seed that they follow from."""
    seed = secrets.token_hex(16)
    with serve_verifier_keys() as google:
        settings.ADMOB_KEYS_URL = google.url
        enable_networks(now=timezone.now())
    assert settle(services, seed)
    return seed


def settle(services: Services, seed: str) -> bool:
    """Let people come whom a member of staff looks after."""
    staff, _ = User.objects.get_or_create(username="staff", is_staff=True)
    return populate(seed=seed, people=_PEOPLE, staff=staff, rpc_url=services.rpc_url, now=timezone.now())


def test_their_ledger_adds_up_and_no_payment_is_made_up(seed: str) -> None:
    assert find_differences() == []
    now = timezone.now()
    window = Window(
        since=now - timedelta(days=90), returned_since=now - timedelta(days=90), settled_before=now
    )
    assert list(ledger.compare_rows(window=window, counts=Counter())) == []
    sources = set(CreditEntry.objects.values_list("source", flat=True))
    assert sources >= set(EntrySource) - _MADE_ELSEWHERE - {EntrySource.RELAY_REVERSAL}
    assert not sources & _MADE_ELSEWHERE
    assert not CreditEntry.objects.filter(created_at__gt=now).exists()


def test_their_experience_is_the_sum_of_its_log(seed: str) -> None:
    for progress in Progress.objects.all():
        log = ExperienceEntry.objects.filter(progress=progress, track=BadgeTrack.PERMANENT)
        found = log.aggregate(total=Sum("amount"))["total"] or 0
        assert progress.permanent_experience == found >= 0


def test_their_earnings_are_worth_what_their_factors_say(seed: str) -> None:
    credited = Postback.objects.filter(kind="CREDIT").select_related("entry")
    assert {row.state for row in credited} >= {PostbackState.AVAILABLE, PostbackState.REVERSED}
    for row in credited:
        bonus = row.badge_bonus + row.modifier_bonus
        assert row.credits == earned_credits(amount=row.amount, rate=row.rate, bonus=bonus)
        if row.entry is not None:
            assert row.entry.amount == row.credits
    assert any(row.badge_bonus for row in credited)
    reversals = Postback.objects.filter(kind="REVERSAL", entry__isnull=False)
    assert not reversals.exclude(entry__amount=-F("credits")).exists()


def test_every_draw_of_theirs_can_be_recomputed(seed: str) -> None:
    public = DailySeed.objects.filter(revealed_at__isnull=False).order_by("day")
    assert len(public) > 30
    found = [verify_day(row.day) for row in public]
    assert sum(day.check_ins for day in found) > _PEOPLE
    assert [difference for day in found for difference in day.differences] == []
    assert Modifier.objects.filter(reason="check-in").exists()


def test_their_relay_calls_have_ended_in_every_way_and_cost_what_their_gas_did(seed: str) -> None:
    rows = RelayTransaction.objects.select_related("hold__entry")
    statuses = Counter(row.status for row in rows)
    assert set(statuses) >= {"Success", "Failed", "Submitted"}
    for row in rows:
        last = row.attempts.latest("sequence")
        assert row.transaction_hash == row.attempts.filter(kind="call").latest("sequence").transaction_hash
        assert bool(row.failure_code) is (row.status not in {"Success", "Submitted"})
        if row.real_cost:
            gas, price, entry = last.gas_used or 0, last.effective_gas_price_wei or 0, row.hold.entry
            assert row.real_cost == cost_in_credits(gas=gas, price_wei=price, credit_wei=settings.CREDIT_WEI)
            assert entry is not None
            assert -entry.amount == min(row.real_cost, row.hold.amount)


def test_waiting_calls_are_with_the_node_and_no_active_relayer_knows_them(
    services: Services, seed: str
) -> None:
    relayer = Relayer.objects.get(is_active=False)
    count = int(services.rpc.call("eth_getTransactionCount", relayer.address, "latest"), 16)
    waiting = Attempt.objects.in_progress()
    assert relayer.mined_account_nonce == count == min(row.account_nonce for row in waiting) - 1
    for row in waiting:
        assert row.relayer == relayer
        taken = services.rpc.call("eth_sendRawTransaction", "0x" + bytes(row.raw).hex())
        assert taken == row.transaction_hash
        assert services.rpc.call("eth_getTransactionReceipt", row.transaction_hash) is None


@pytest.mark.parametrize("price_wei", [4 * 10**9, 10**12])
def test_no_waiting_call_is_to_be_signed_again_when_gas_gets_dearer(seed: str, price_wei: int) -> None:
    head = Head(number=1, timestamp=int(timezone.now().timestamp()), base_fee_wei=price_wei)
    waiting = list(Attempt.objects.in_progress())
    assert waiting
    for row in waiting:
        assert not replacement.replace(attempt_id=row.pk, fees=fees_today(head=head), now=timezone.now())
    assert Attempt.objects.in_progress().count() == len(waiting)


def test_they_come_once_and_follow_from_their_seed(services: Services, seed: str) -> None:
    counts = [model.objects.count() for model in _TABLES]
    assert settle(services, seed) is False
    assert [model.objects.count() for model in _TABLES] == counts
    here = residents(seed=seed, people=_PEOPLE)
    assert len(here) == _PEOPLE
    assert residents(seed=seed, people=_PEOPLE) == here
    assert residents(seed=secrets.token_hex(16), people=_PEOPLE) == []


def test_large_adjustments_wait_for_somebody_else(seed: str) -> None:
    waiting = AdjustmentRequest.objects.filter(decision=AdjustmentDecision.PENDING)
    assert waiting.count() > 1
    staff = User.objects.get(username="staff")
    assert all(asked.needs_second_person and asked.requested_by != staff for asked in waiting)
    assert not CreditEntry.objects.filter(key__in=waiting.values("key")).exists()


def test_a_generated_user_is_one_that_can_sign_in(seed: str) -> None:
    user = residents(seed=seed, people=_PEOPLE)[0]
    assert user_of_profile(profile_address=str(user.profile_address)) == user
    assert not user.has_usable_password()
