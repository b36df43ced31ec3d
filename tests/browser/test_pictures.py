"""The pages that staff live in, by day and by night; SCREENSHOTS names a folder that keeps the pictures."""

import random
import secrets
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from checkin.models import DropTable
from checkin.services import checkins
from credits.models import BadgeTrack, EntrySource, ModifierType
from credits.services import audits, experience, ledger, modifiers
from credits.services.allowance import set_allowance
from relay.models import Relayer, RelayTransaction
from relay.services import reconcile
from tests.browser.conftest import Scheme
from tests.browser.desk import Desk, employ
from tests.factories import UserFactory
from tests.users.api.histories import relayed
from tests.users.staff.conftest import mined
from users.models import User

_EARNINGS = [EntrySource.SURVEYS, EntrySource.OFFERWALL, EntrySource.PUSH_ADS, EntrySource.VIDEO_ADS]


@pytest.fixture
def person(live_server: LiveServer) -> User:
    """A subscriber among others, with a history of a month."""
    people = [UserFactory.create() for _ in range(4)]
    for user in people:
        _earn(user)
        relayed(user, random.randint(8, 30))
    _spread_over_the_day()
    chosen = people[0]
    _reward(chosen)
    return chosen


def _earn(user: User) -> None:
    for _ in range(random.randint(5, 12)):
        ledger.grant(
            user=user,
            credits=random.randint(20, 900),
            source=random.choice(_EARNINGS),
            key=secrets.token_hex(8),
        )


def _reward(user: User) -> None:
    begin = timezone.now() - timedelta(days=12)
    set_allowance(user=user, credits=25_500, starts_at=begin, ends_at=begin + timedelta(days=30), renews=True)
    for track, base in ((BadgeTrack.PERMANENT, 7_400), (BadgeTrack.SUBSCRIBER, 5_100)):
        experience.gain(user=user, track=track, base=base, key=secrets.token_hex(8), cause="TEST")
    modifiers.grant(
        user=user,
        modifier_type=ModifierType.BONUS_SURVEYS_CREDITS,
        value=Decimal("0.15"),
        minutes=720,
        key=secrets.token_hex(8),
        reason="an apology",
    )
    checkins.execute(user=user, now=timezone.now(), idempotency_key="")


def _spread_over_the_day() -> None:
    now = timezone.now()
    for row in RelayTransaction.objects.all():
        asked_at = now - timedelta(minutes=random.randint(1, 1_400))
        RelayTransaction.objects.filter(pk=row.pk).update(created_at=asked_at, settled_at=asked_at)
        row.created_at = asked_at
        mined(row, at=asked_at + timedelta(seconds=random.randint(8, 40)), gas=150_000, price_wei=6_000_000)
    unlucky = RelayTransaction.objects.order_by("?").values_list("pk", flat=True)[:3]
    RelayTransaction.objects.filter(pk__in=list(unlucky)).update(
        status="Failed", end_code="call-reverted", end_detail="The target said: not enough apples."
    )
    Relayer.objects.update(balance_wei=3 * 10**18)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_that_staff_live_in(
    desk_in: Callable[[Scheme], Desk], person: User, scheme: Scheme
) -> None:
    audits.audit_ledger(now=timezone.now())
    reconcile.reconcile(now=timezone.now())
    failed = RelayTransaction.objects.filter(status="Failed").order_by("pk")[0]
    table = DropTable.objects.filter(published_at__isnull=False).latest("pk")
    desk = desk_in(scheme)
    page = desk.log_in(employ())
    for name, path, words in (
        ("front-page", "/admin/", "Success rate"),
        ("person", f"/admin/users/user/{person.pk}/change/", "Badges and modifiers"),
        ("ledger", "/admin/credits/creditentry/", "Relay Transaction"),
        ("relay-transaction", f"/admin/relay/relaytransaction/{failed.pk}/change/", "not enough apples"),
        ("drop-table", f"/admin/checkin/droptable/{table.pk}/change/", "EXPERIENCE"),
        ("reconciliation", "/admin/books/", "Chain against captures"),
    ):
        _shows(desk.open(path), words)
        desk.picture(f"{name}-{scheme}", whole=False)
    assert page.evaluate("document.documentElement.classList.contains('dark')") == (scheme == "dark")


def _shows(page: Page, words: str) -> None:
    expect(page.locator("#content").get_by_text(words).locator("visible=true").first).to_be_visible()
