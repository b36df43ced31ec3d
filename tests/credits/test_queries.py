"""What the ledger returns."""

import random
import secrets
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries as NumQueries

from credits.models import CreditAccount, CreditEntry, EntrySource
from credits.queries import HAS_EARNED, account_of, balance_of, has_earned
from credits.services import entries
from rewards.models import Badge, BadgeTrack, ModifierType
from rewards.queries import badge_debt_of, badges_at, current_rewards, debt_limit_of
from rewards.services import experience
from tests.credits.allowances import set_allowance
from tests.credits.holding import place_hold
from tests.credits.rows import query
from tests.database import as_owner
from tests.factories import UserFactory, random_address
from tests.rewards.rows import set_experience
from users.models import User
from users.queries import owner_of, staff_named


@pytest.mark.django_db
def test_a_user_without_an_account_has_no_credits() -> None:
    user = UserFactory.create()
    assert account_of(user).pk is None
    assert balance_of(user) == (0, 0, 0)


def test_a_balance_shows_held_and_available_credits(user: User, funds: int, key: str) -> None:
    place_hold(user=user, credits=funds + 3, key=key, debt_limit=3)
    assert balance_of(user) == (funds, funds + 3, -3)
    assert account_of(user).available == -3


def test_the_newest_entries_of_an_account_are_read_from_an_index_in_order(user: User) -> None:
    newest = CreditEntry.objects.filter(account=account_of(user)).order_by("-account_version")[:50]
    query("SET LOCAL enable_seqscan = off")
    query("SET LOCAL enable_bitmapscan = off")
    with connection.cursor() as cursor:
        sql, params = newest.query.sql_with_params()
        cursor.execute(f"EXPLAIN {sql}", params)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Scan Backward using credits_entry_account_version" in plan
    assert "Sort" not in plan


def test_a_user_is_found_by_the_address_in_any_casing(user: User) -> None:
    address = user.profile_address or ""
    for spelling in (address, address.lower(), "0x" + address[2:].upper()):
        assert owner_of(spelling) == user
    assert owner_of(random_address()) is None
    assert owner_of("not an address") is None


@pytest.mark.django_db
def test_only_staff_are_found_by_username() -> None:
    staff = UserFactory.create(profile_address=None, is_staff=True)
    gone = UserFactory.create(profile_address=None, is_staff=True, is_active=False)
    assert staff_named(staff.username) == staff
    assert staff_named(gone.username) is None
    assert staff_named(UserFactory.create().username) is None
    assert staff_named(secrets.token_hex(8)) is None


@pytest.mark.django_db
def test_a_newcomer_has_the_lowest_badges_and_no_benefits(django_assert_num_queries: NumQueries) -> None:
    user = UserFactory.create()
    with django_assert_num_queries(3):
        rewards = current_rewards(user=user, now=timezone.now())
    lowest = [Badge.objects.filter(track=track).earliest("exp_lower_bound") for track in BadgeTrack]
    assert [rewards.permanent_badge, rewards.subscriber_badge] == lowest
    assert not rewards.is_subscriber
    assert rewards.benefits.check_in_attempts == 1
    assert rewards.benefits.badge_debt == 0
    assert {rewards.benefits.bonus(raised) for raised in ModifierType} == {0}


def test_the_subscriber_badge_counts_while_the_allowance_runs(user: User) -> None:
    begin = timezone.now()
    top = Badge.objects.filter(track=BadgeTrack.SUBSCRIBER).latest("exp_lower_bound")
    experience.gain(
        user=user,
        track=BadgeTrack.SUBSCRIBER,
        base=top.exp_lower_bound,
        key=secrets.token_hex(8),
        cause="TEST",
    )
    set_allowance(user=user, credits=5, starts_at=begin, ends_at=begin + timedelta(days=30), renews=False)
    during = current_rewards(user=user, now=begin)
    assert (during.subscriber_badge, during.is_subscriber) == (top, True)
    assert during.benefits.badge_debt == top.acceptable_credit_debt
    assert during.benefits.check_in_attempts == 1 + top.bonus_daily_check_in_attempts
    assert during.benefits.bonus(ModifierType.BONUS_SURVEYS_CREDITS) == top.bonus_creds_surveys

    after = current_rewards(user=user, now=begin + timedelta(days=30))
    assert (after.subscriber_badge.exp_lower_bound, after.is_subscriber) == (0, False)
    assert after.benefits.bonus(ModifierType.BONUS_SURVEYS_CREDITS) == 0


@pytest.mark.parametrize("richer", list(BadgeTrack))
@pytest.mark.parametrize("renews", [False, True])
def test_the_debt_limit_is_the_standings_at_any_time(user: User, richer: str, renews: bool) -> None:
    begin = timezone.now()
    for track in BadgeTrack:
        debt = random.randint(1, 99) + 100 * (track == richer)
        experience.gain(user=user, track=track, base=debt, key=secrets.token_hex(8), cause="TEST")
        # Less than the user's funds, which are kept earnings.
        Badge.objects.filter(track=track).update(acceptable_credit_debt=F("exp_lower_bound") % 7 + debt)
    end = begin + timedelta(days=30)
    set_allowance(user=user, credits=5, starts_at=begin, ends_at=end, renews=renews)
    seconds = [begin - timedelta(seconds=1), begin, end - timedelta(seconds=1), end]
    limits = []
    for now in (*seconds, end + timedelta(hours=72, seconds=-1), end + timedelta(hours=72)):
        limits.append(debt_limit_of(user=user, now=now))
        assert limits[-1] == current_rewards(user=user, now=now).benefits.badge_debt
    assert min(limits) > 0
    if richer == BadgeTrack.SUBSCRIBER:
        assert len(set(limits)) == 2


@pytest.mark.parametrize("track", BadgeTrack)
def test_the_debt_limit_is_that_of_the_users_own_badge(user: User, track: str) -> None:
    now = timezone.now()
    subscribe = partial(
        set_allowance, starts_at=now - timedelta(days=1), ends_at=now + timedelta(days=1), renews=False
    )
    # Another user has come further on both tracks, and is subscribed.
    other = UserFactory.create()
    badges = list(Badge.objects.filter(track=track).order_by("exp_lower_bound"))
    top = badges[-1].exp_lower_bound
    for gaining in BadgeTrack:
        experience.gain(user=other, track=gaining, base=top, key=secrets.token_hex(8), cause="TEST")
    subscribe(user=other, credits=9)
    Badge.objects.update(acceptable_credit_debt=0)
    debts = random.sample(range(1, 999), len(badges))
    for badge, debt in zip(badges, debts, strict=True):
        Badge.objects.filter(pk=badge.pk).update(acceptable_credit_debt=debt)

    column = f"{track.lower()}_experience"
    is_subscribers = track == BadgeTrack.SUBSCRIBER
    for is_subscribed in (False, True):
        if is_subscribed:
            subscribe(user=user, credits=5)
        for position, badge in enumerate(badges):
            for offset in (0, 1) if position == 0 else (-1, 0, 1):
                set_experience(user, **{column: badge.exp_lower_bound + offset})
                limit = debts[position - 1 if offset == -1 else position]
                expected = limit if is_subscribed or not is_subscribers else 0
                assert debt_limit_of(user=user, now=now) == expected


@pytest.mark.django_db
def test_a_subscriber_without_an_account_may_owe_nothing() -> None:
    user, now = UserFactory.create(), timezone.now()
    lowest = Badge.objects.filter(track=BadgeTrack.SUBSCRIBER).earliest("exp_lower_bound")
    debt = random.randint(1, 99)
    Badge.objects.filter(pk=lowest.pk).update(acceptable_credit_debt=debt)
    set_allowance(user=user, credits=5, starts_at=now, ends_at=now + timedelta(days=1), renews=False)
    CreditAccount.objects.filter(user=user).delete()
    assert (badge_debt_of(user=user, now=now), debt_limit_of(user=user, now=now)) == (debt, 0)


@pytest.mark.django_db
def test_the_debt_limit_is_known_without_account_allowance_or_levels(
    django_assert_num_queries: NumQueries,
) -> None:
    user, now = UserFactory.create(), timezone.now()
    debt = random.randint(1, 99)
    Badge.objects.filter(track=BadgeTrack.PERMANENT).update(acceptable_credit_debt=debt)
    kept = random.randint(1, 99)
    entries.grant(user=user, credits=kept, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    with django_assert_num_queries(1):
        assert debt_limit_of(user=user, now=now) == min(debt, kept)
    Badge.objects.all().delete()
    assert debt_limit_of(user=user, now=now) == 0


@pytest.mark.parametrize("offset", [-1, 0])
def test_a_badge_is_current_from_its_lower_bound_on(user: User, offset: int) -> None:
    badges = list(Badge.objects.filter(track=BadgeTrack.PERMANENT))
    position = random.randint(1, len(badges) - 1)
    at = badges[position].exp_lower_bound + offset
    assert badges_at([(BadgeTrack.PERMANENT, at)]) == [badges[position + offset]]


def test_without_levels_a_badge_grants_nothing(user: User) -> None:
    Badge.objects.all().delete()
    rewards = current_rewards(user=user, now=timezone.now())
    assert rewards.permanent_badge.exp_upper_bound is None
    assert rewards.benefits.check_in_attempts == 1


@pytest.mark.django_db
@pytest.mark.parametrize("source", EntrySource)
def test_only_paid_and_earned_credits_prove_a_user(source: str, key: str) -> None:
    owner = UserFactory.create()
    assert not has_earned(owner)
    if source in {EntrySource.STAFF_ADJUSTMENT, EntrySource.RELAY_TRANSACTION}:
        entries.adjust(user=owner, credits=5, key=key, actor=None, reason="test")
    else:
        entries.grant(user=owner, credits=5, source=source, key=key)
    paid_or_earned = {"SUBSCRIBED_PAYOUT", "CREDIT_PURCHASE", "PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS"}
    assert has_earned(owner) is (source in paid_or_earned)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "taken", "is_proven"),
    [
        ([("SURVEYS", 50)], [("EARNING_REVERSAL", 50)], False),
        ([("SURVEYS", 50)], [("EARNING_REVERSAL", 20)], True),
        ([("SURVEYS", 50), ("VIDEO_ADS", 1)], [("EARNING_REVERSAL", 50)], True),
        ([("SURVEYS", 50), ("VIDEO_ADS", 1)], [("EARNING_REVERSAL", 50), ("EARNING_REVERSAL", 1)], False),
        ([("SUBSCRIBED_PAYOUT", 90)], [("PAYOUT_CLAWBACK", 90)], False),
        ([("SUBSCRIBED_PAYOUT", 90)], [("PAYOUT_CLAWBACK", 45)], True),
        # Nothing else makes up for what was taken back.
        ([("SURVEYS", 50), ("CHECK_IN", 99), ("CREDITS_BACK", 99)], [("EARNING_REVERSAL", 50)], False),
    ],
)
def test_reversed_credits_prove_nothing(
    given: list[tuple[str, int]], taken: list[tuple[str, int]], is_proven: bool
) -> None:
    owner = UserFactory.create()
    for source, amount in given:
        entries.grant(user=owner, credits=amount, source=source, key=secrets.token_hex(8))
    assert has_earned(owner)
    for source, amount in taken:
        entries.reverse(user=owner, credits=amount, source=source, key=secrets.token_hex(8))
    assert has_earned(owner) is is_proven


def test_the_proof_is_found_without_reading_entries_in_between(user: User) -> None:
    _earn_and_spend(people=100, times=100)
    assert has_earned(user)
    query("SET LOCAL enable_bitmapscan = off")
    # What a connection keeps to once the statement was repeated often enough.
    query("SET LOCAL plan_cache_mode = force_generic_plan")
    query(f"PREPARE earned (bigint) AS {HAS_EARNED}".replace("%(user)s", "$1"))
    plan = [line.strip(" ->") for (line,) in query(f"EXPLAIN (COSTS off) EXECUTE earned ({user.pk})")]
    query("DEALLOCATE earned")
    reads = [place for place, line in enumerate(plan) if " on credits_entry" in line]
    assert len(reads) == 3
    for place in reads:
        # No row of the table, and no entry of anybody else.
        assert plan[place].startswith("Index Only Scan using credits_entry_proving on")
        assert plan[place + 1].startswith(("Index Cond: (account_id =", "Index Cond: ((account_id ="))
        assert not "".join(plan[place + 2 : place + 3]).startswith("Filter")


def _earn_and_spend(people: int, *, times: int) -> None:
    """Write many entries for many accounts: PostgreSQL chooses an index by how much there is to read."""
    for _ in range(people):
        entries.open_account(user_id=UserFactory.create().pk)
    query(
        """
        INSERT INTO credits_entry
            (account_id, amount, source, key, balance_before, balance_after, account_version, reason)
        SELECT id, 1, ('{SURVEYS,EARNING_REVERSAL,CHECK_IN,RELAY_TRANSACTION}'::text[])[1 + n %% 4],
               gen_random_uuid(), 0, 1, n + 1, ''
        FROM credits_account, generate_series(1, %s) n
        """,
        times,
    )
    as_owner("ANALYZE credits_entry, credits_account")
