"""The pages that staff live in; SCREENSHOTS names a folder that keeps pictures of them, by day and by night."""

import os
import random
import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from backoffice.roles import ROLES
from checkin.models import CheckIn, DropTable
from checkin.services import checkins
from credits.services import adjustments, reconciliation
from devstack.demo.people import addresses_of
from devstack.services.stack import Services
from gateway.admin import columns
from payments.models import Payout, PayoutRate
from payments.services import reconciliation as stripe_reconcile
from payments.stripe import set_billing_client
from relay.models import RelayTransaction
from relay.services.settling import reconciliation as relay_reconcile
from rewards.models import ModifierType
from rewards.services import modifiers
from tests.browser.admin_client import AdminClient, Person, Scheme, employ
from tests.demo.generating import generate
from tests.fakes.billing import FakeBilling
from tests.payments.payers import Payer
from tests.payments.webhook_events import process_events
from tests.staff import member
from users.models import User

_IS_KEPT = "SCREENSHOTS" in os.environ
# Pictures for documents should show a busy service.
_PEOPLE = 40 if _IS_KEPT else 10


@pytest.fixture
def person(
    owner_connection: None, live_server: LiveServer, services: Services, settings: Any
) -> Iterator[User]:
    """A subscriber who has relayed calls, among others who have used the service for weeks."""
    seed = f"{random.getrandbits(128):032x}"
    staff = User.objects.create(username="grace", is_staff=True)
    callers = generate(services, settings, seed=seed, staff=staff, people=_PEOPLE)
    chosen = User.objects.get(profile_address=callers[0].profile_address)
    _pay(settings, chosen, *User.objects.filter(profile_address__in=addresses_of(seed, 3)))
    _reward(chosen, staff)
    yield chosen
    set_billing_client(None)


def _pay(settings: Any, *payers: User) -> None:
    """Let them subscribe at a Stripe in memory, which tells of it, and compare with it."""
    settings.STRIPE_SECRET_KEY = f"sk_test_{secrets.token_hex(12)}"
    settings.STRIPE_WEBHOOK_SECRETS = [f"whsec_{secrets.token_hex(12)}"]
    PayoutRate.objects.get_or_create(
        currency="usd",
        valid_from=datetime(2020, 1, 1, tzinfo=UTC),
        defaults={"credits_per_major_unit": 1_000, "experience_per_minor_unit": 10},
    )
    fake = FakeBilling(webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS)
    set_billing_client(fake)
    for place, user in enumerate(payers, 1):
        Payer(fake, user).with_card().upsert(place * 500 + 49)
    assert process_events(fake.events, now=fake.now())


def _reward(user: User, staff: User) -> None:
    modifiers.grant(
        user=user,
        modifier_type=ModifierType.BONUS_SURVEYS_CREDITS,
        value=Decimal("0.15"),
        minutes=720,
        key=secrets.token_hex(8),
        reason="An apology for a survey that was lost.",
        actor=staff,
    )
    if not CheckIn.objects.filter(user=user).exists():
        checkins.execute(user=user, now=timezone.now(), idempotency_key="")


def _colleague(name: str) -> Person:
    """Employ a clerk who has every role without being a superuser."""
    person = employ(is_superuser=False)
    person.user.username = name
    person.user.save()
    person.user.groups.set(Group.objects.filter(name__in=ROLES))
    return person


def test_the_most_used_staff_pages_show_recent_events(
    admin_in: Callable[[Scheme], AdminClient], person: User
) -> None:
    reconciliation.reconcile(now=timezone.now())
    relay_reconcile.reconcile(now=timezone.now())
    stripe_reconcile.reconcile(now=timezone.now(), minutes=0)
    adjustments.request(
        user=person,
        credits=750_000,
        key=secrets.token_hex(8),
        actor=member("support"),
        reason="A campaign was counted twice.",
    )
    failed = RelayTransaction.objects.filter(status="Failed").latest("created_at")
    table = DropTable.objects.filter(published_at__isnull=False).latest("pk")
    schemes: tuple[tuple[Scheme, str], ...] = (("light", "ada"), ("dark", "barbara"))
    for scheme, name in schemes if _IS_KEPT else schemes[:1]:
        admin = admin_in(scheme)
        page = admin.enter(_colleague(name))
        for kind, path, words in (
            ("front-page", "/admin/", ("Success rate", "Relayers")),
            (
                "person",
                f"/admin/users/user/{person.pk}/change/",
                ("Badges and modifiers", "An apology for a survey"),
            ),
            ("ledger", "/admin/credits/creditentry/", ("Relay Transaction",)),
            (
                "relay-transaction",
                f"/admin/relay/relaytransaction/{failed.pk}/change/",
                (columns.word_of(failed.failure_code), failed.failure_detail),
            ),
            (
                "drop-table",
                f"/admin/checkin/droptable/{table.pk}/change/",
                ("Experience", "expected per day"),
            ),
            (
                "refund",
                f"/admin/payments/payout/{Payout.objects.get(user=person).pk}/refund/",
                ("back to the card", "Available credits afterwards"),
            ),
            ("queue", "/admin/gateway_admin/approvalrequest/", ("credits: +750,000",)),
            ("reconciliation", "/admin/books/", ("Chain against captures", "Settled calls")),
        ):
            _shows(admin.open(path), *words)
            # Nothing lies over a page that is only read.
            expect(page.locator("#submit-row").locator("visible=true")).to_have_count(0)
            admin.picture(f"{kind}-{scheme}", whole=False)
        assert page.evaluate("document.documentElement.classList.contains('dark')") == (scheme == "dark")


def _shows(page: Page, *words: str) -> None:
    for word in words:
        expect(page.locator("#content").get_by_text(word).locator("visible=true").first).to_be_visible()
