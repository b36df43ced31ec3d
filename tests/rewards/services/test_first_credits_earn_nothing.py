"""What first credits pay earns nothing: they are no payment."""

import random
import secrets
from datetime import timedelta

import pytest
from django.utils import timezone

from credits.models import CreditAccount, CreditEntry, EntrySource, HomeCredits
from credits.queries import has_earned
from credits.services import entries
from rewards.models import CashbackEntry, ExperienceEntry, Progress
from tests.credits.holding import place_hold
from tests.database import rows_of
from tests.factories import UserFactory
from tests.rewards.settlements import reverse, settle
from users.models import User

pytestmark = pytest.mark.django_db
_FIRST, _BOUGHT = random.randint(1_000, 5_000), 10_000


@pytest.fixture
def user(db: None) -> User:
    """A person with first credits, and with credits of a purchase."""
    user = UserFactory.create()
    for amount, source in (
        (_FIRST, EntrySource.FIRST_CREDITS),
        (_BOUGHT, EntrySource.CREDIT_PURCHASE),
    ):
        entries.grant(user=user, credits=amount, source=source, key=secrets.token_hex(16))
    HomeCredits.objects.create(
        account=CreditAccount.objects.get(user=user),
        credits=_FIRST,
        expires_at=timezone.now() + timedelta(days=1),
    )
    return user


def _held(user: User, credits: int) -> int:
    return place_hold(user=user, credits=credits, key=secrets.token_hex(8)).hold.pk


def _gained(hold_id: int) -> list[int]:
    rows = ExperienceEntry.objects.filter(key__startswith=f"spent:hold:{hold_id}")
    return list(rows.values_list("base", flat=True))


def test_a_call_that_first_credits_pay_earns_no_experience_and_no_cashback(user: User) -> None:
    before = rows_of(ExperienceEntry, CashbackEntry, Progress)
    settle({_held(user, _FIRST): _FIRST})
    assert rows_of(ExperienceEntry, CashbackEntry, Progress) == before
    assert not CreditEntry.objects.filter(source=EntrySource.CREDITS_BACK).exists()


def test_the_part_beyond_first_credits_earns_as_any_other_spending(user: User) -> None:
    beyond = random.randint(1, 999)
    whole, part, after = _held(user, _FIRST - 100), _held(user, 100 + beyond), _held(user, 7)
    settle({whole: _FIRST - 100, part: 100 + beyond, after: 7})
    assert (_gained(whole), _gained(part), _gained(after)) == ([], [beyond], [7])
    most = CashbackEntry.objects.filter(key=f"back:hold:{part}").values_list("amount", flat=True)
    assert all(0 < amount <= beyond * 10**4 for amount in most)


def test_a_call_that_is_settled_again_after_a_reorganisation_earns_as_before(user: User) -> None:
    whole, after = _held(user, _FIRST), _held(user, 70)
    settle({whole: _FIRST, after: 70})
    gained = Progress.objects.get(user=user).permanent_experience
    reverse([after, whole])
    settle({whole: _FIRST, after: 70})
    assert (_gained(whole), _gained(after)) == ([], [70, 70])
    assert Progress.objects.get(user=user).permanent_experience == gained


def test_first_credits_prove_no_payment_for_check_ins() -> None:
    user = UserFactory.create()
    entries.grant(user=user, credits=5, source=EntrySource.FIRST_CREDITS, key=secrets.token_hex(8))
    assert not has_earned(user)
