"""How a profile came to be, on the person's page: who asked for it, who paid, and its first credits."""

import random
import secrets

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from backoffice.person import person_of
from gateway.chain.config import home
from relay.models import ProfileCreation
from sponsors.models import ApiKey
from sponsors.services import policies
from tests.backoffice.test_person import page_of, section_of
from tests.factories import UserFactory, random_address
from tests.relay import conftest as relay
from tests.relay.api.test_profiles import server_of
from tests.relay.conftest import Settle
from tests.relay.creating import create, deployment_of, for_profiles
from tests.relay.services.test_welcome_policy import welcoming
from tests.sponsors.sponsorships import make_sponsor

pytestmark = pytest.mark.django_db
chain, relayers, trusted, settle = relay.chain, relay.relayers, relay.trusted, relay.settle


def test_the_page_tells_who_asked_for_a_profile_who_paid_and_what_it_got(
    staff: Client, relayers: object, trusted: None, settle: Settle
) -> None:
    gift = random.randint(1_000, 9_000)
    sponsor = make_sponsor()
    paying = for_profiles(sponsor, first_credits=gift, first_days=9)
    row = create(sponsor)
    server_of(sponsor)
    key = ApiKey.objects.get(sponsor=sponsor)
    ProfileCreation.objects.update(api_key=key)
    waiting = section_of(page_of(staff, row.user), "Origin")
    assert f"{gift:,} held" in waiting
    assert "left, until" not in waiting
    assert settle() == 1
    section = section_of(page_of(staff, row.user), "Origin")
    cost = deployment_of(row).real_cost
    asked = f"deploy a new profile {row.chain_id} {sponsor} (key {key})"
    assert f"{asked} {paying.policy}, version 1 {cost:,} 0.0" in section
    assert f"{gift:,} captured" in section
    assert f"First credits: {gift:,} of {gift:,} left, until" in section
    assert "welcome" not in section


def test_the_page_names_the_operator_where_its_welcome_policy_paid(
    staff: Client, relayers: object, trusted: None, settle: Settle
) -> None:
    operator, asking = welcoming(), make_sponsor()
    row = create(asking)
    section = section_of(page_of(staff, row.user), "Origin")
    assert f"{asking} {operator.slug}/" in section
    assert "(the operator's welcome policy)" in section
    policies.make_default(operator, is_default=False)


def test_a_profile_that_existed_before_was_paid_by_nobody(staff: Client) -> None:
    user, sponsor = UserFactory.create(), make_sponsor()
    assert "The person came with a profile." in section_of(page_of(staff, user), "Origin")
    ProfileCreation.objects.create(
        kind="registered",
        sponsor=sponsor,
        user=user,
        request_key="0x" + secrets.token_hex(32),
        body_hash="0x" + secrets.token_hex(32),
        profile_address=str(user.profile_address),
        key_manager_address=random_address(),
    )
    section = section_of(page_of(staff, user), "Origin")
    assert (
        f"open an account for an existing profile {home().id} {sponsor} nobody: it existed - - - -" in section
    )


def test_many_requests_for_a_profile_take_no_more_statements(
    staff: Client, relayers: object, trusted: None, settle: Settle
) -> None:
    first, others = make_sponsor(), [make_sponsor() for _ in range(4)]
    for_profiles(first, first_credits=5, first_days=5)
    row = create(first)
    settle()
    person_of(user=row.user, now=timezone.now())
    counts = []
    for more in ([], others):
        for other in more:
            ProfileCreation.objects.create(
                sponsor=other,
                user=row.user,
                hold_id=row.hold_id,
                request_key=row.request_key,
                body_hash=row.body_hash,
                profile_address=row.profile_address,
                key_manager_address=row.key_manager_address,
                chain_id=row.chain_id,
            )
        with CaptureQueriesContext(connection) as statements:
            shown = person_of(user=row.user, now=timezone.now())
        counts.append(len(statements))
        assert len(shown.origins) == 1 + len(more)
    assert counts[0] == counts[1]
