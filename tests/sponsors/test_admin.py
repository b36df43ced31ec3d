"""Sponsors in the admin: their credits on their page, and terms written in a form and approved by a second person."""

import re
import secrets

import pytest
from django.test import Client

from sponsors.models import Member, Policy, PolicyVersion
from tests.factories import UserFactory, make, random_address
from tests.sponsors.sponsorships import make_sponsor
from tests.staff import browser_of, confirm, member, saved

pytestmark = pytest.mark.django_db
ADD_VERSION = "/admin/sponsors/policyversion/add/"


@pytest.fixture
def finance() -> Client:
    return browser_of(member("finance"))


def test_the_page_of_a_sponsor_shows_its_credits(finance: Client) -> None:
    balance = 10_000 + secrets.randbelow(90_000)
    sponsor = make_sponsor(balance)
    page = finance.get(f"/admin/sponsors/sponsor/{sponsor.pk}/change/").content.decode()
    assert re.findall(r">\s*(Balance|Available|Is frozen)\s*<", page) == ["Is frozen", "Balance", "Available"]
    assert len(re.findall(rf">\s*{balance}\s*<", page)) == 2


def test_terms_written_in_the_form_count_once_they_are_approved(finance: Client) -> None:
    policy, contract = make(Policy), random_address()
    ceiling = secrets.randbelow(10**12)
    form = finance.get(ADD_VERSION).content.decode()
    [field] = re.findall(r'<input[^>]*name="gas_price_ceiling_wei"[^>]*>', form)
    assert "border" in field
    body = {
        "policy": policy.pk,
        "targets": f'[{{"contract": "{contract}"}}]',
        "profiles": "all",
        "listed": "",
        "gas_price_ceiling_wei": ceiling,
        "share_percent": 100,
        "call_credits": 500,
    }
    saved(finance, ADD_VERSION, body, role="operations")
    version = PolicyVersion.objects.get(policy=policy)
    assert (version.number, version.gas_price_ceiling_wei, version.call_credits) == (1, ceiling, 500)
    assert version.targets == [{"contract": contract, "functions": []}]


def test_staff_add_the_first_owner_and_owners_do_the_rest(finance: Client) -> None:
    sponsor, user = make_sponsor(), UserFactory.create()
    answers = {"profile": str(user.profile_address).lower(), "role": "owner"}
    confirm(finance, "sponsors_sponsor", "put_member", sponsor, **answers)
    member_row = Member.objects.get(sponsor=sponsor)
    assert (member_row.user, member_row.role) == (user, "owner")
    confirm(finance, "sponsors_member", "remove_member", member_row)
    assert Member.objects.filter(sponsor=sponsor).exists()
