"""Sponsors in the admin: their credits on their page, and terms written in a form and approved by a second person."""

import re
import secrets

import pytest
from django.contrib.admin.models import LogEntry
from django.core.exceptions import ValidationError
from django.test import Client

from gateway.staff import audit
from sponsors.models import Member, Policy, PolicyVersion, VoucherSigner
from sponsors.services import signers
from tests.factories import UserFactory, make, random_address
from tests.sponsors.api.callers import call, member_of
from tests.sponsors.sponsorships import make_policy, make_sponsor, new_version
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


def test_the_page_of_a_sponsor_lists_its_policies_in_their_order(finance: Client) -> None:
    sponsor, other = make_sponsor(), make_sponsor()
    second, first = (make_policy(sponsor, position=position).policy for position in (2, 1))
    new_version(first)
    make_policy(other)
    page = finance.get(f"/admin/sponsors/sponsor/{sponsor.pk}/change/").content.decode()
    links = re.findall(r"/admin/sponsors/policy/(\d+)/change/", page)
    assert list(dict.fromkeys(links)) == [str(first.pk), str(second.pk)]
    assert page.index(first.name) < page.index(second.name)
    assert finance.get("/admin/sponsors/sponsor/add/").status_code == 200


def test_a_removed_signer_stays_as_a_row_and_can_be_added_again(finance: Client) -> None:
    signer = VoucherSigner(sponsor=make_sponsor(), address=random_address())
    signers.save(signer, {})
    signers.remove(signer)
    first = VoucherSigner.objects.get()
    assert first.removed_at is not None
    signers.remove(signer)
    assert VoucherSigner.objects.get() == first
    assert VoucherSigner.objects.get().removed_at == first.removed_at
    page = finance.get(f"/admin/sponsors/vouchersigner/{first.pk}/change/").content.decode()
    assert "remove_signer" not in page

    again = VoucherSigner(sponsor=signer.sponsor, address=signer.address)
    signers.save(again, {})
    with pytest.raises(ValidationError):
        signers.save(VoucherSigner(sponsor=signer.sponsor, address=signer.address), {})
    assert VoucherSigner.objects.filter(removed_at=None).get() == again


def test_terms_written_in_the_form_count_once_they_are_approved(finance: Client) -> None:
    policy, contract = make(Policy), random_address()
    ceiling = secrets.randbelow(10**12)
    form = finance.get(ADD_VERSION).content.decode()
    [field] = re.findall(r'<input[^>]*name="gas_price_ceiling_wei"[^>]*>', form)
    assert "border" in field
    body = {
        "policy": policy.pk,
        "targets": f'[{{"contract": "{contract}"}}]',
        "purpose": "calls",
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
    results = {"profile": str(user.profile_address).lower(), "role": "owner"}
    confirm(finance, "sponsors_sponsor", "put_member", sponsor, **results)
    member_row = Member.objects.get(sponsor=sponsor)
    assert (member_row.user, member_row.role) == (user, "owner")
    confirm(finance, "sponsors_member", "remove_member", member_row)
    assert Member.objects.filter(sponsor=sponsor).exists()


def test_terms_for_holders_of_a_token_are_written_in_the_form(finance: Client) -> None:
    policy, token, least = make(Policy), random_address(), 10**18 + secrets.randbelow(10**30)
    body = {
        "policy": policy.pk,
        "targets": "[]",
        "purpose": "calls",
        "profiles": "holding",
        "counterpart": token.lower(),
        "least_balance": least,
        "listed": "",
        "gas_price_ceiling_wei": "",
        "share_percent": 100,
        "call_credits": 500,
    }
    assert finance.post(ADD_VERSION, {**body, "least_balance": ""}).context["adminform"].form.errors
    saved(finance, ADD_VERSION, body, role="operations")
    version = PolicyVersion.objects.get(policy=policy)
    assert (version.counterpart, version.least_balance) == (token, least)
    assert version.gas_price_ceiling_wei is None


def test_finance_set_the_alarm_and_take_it_away(finance: Client) -> None:
    sponsor, limit = make_sponsor(), 1 + secrets.randbelow(10**6)
    confirm(finance, "sponsors_sponsor", "set_alarm", sponsor, credits=limit)
    sponsor.refresh_from_db()
    assert sponsor.alarm_credits == limit
    confirm(finance, "sponsors_sponsor", "set_alarm", sponsor, credits=0)
    sponsor.refresh_from_db()
    assert sponsor.alarm_credits == limit
    confirm(finance, "sponsors_sponsor", "set_alarm", sponsor, credits="")
    sponsor.refresh_from_db()
    assert sponsor.alarm_credits is None


def test_policies_are_named_with_their_sponsor(finance: Client) -> None:
    version = make_policy(make_sponsor())
    name = f"{version.policy.sponsor.slug}/{version.policy.name}"
    assert (str(version.policy), str(version)) == (name, f"{name}, version 1")
    assert f">{name}</option>" in re.sub(
        r"\s*(\S+)\s*</option>", r"\1</option>", finance.get(ADD_VERSION).content.decode()
    )


def test_changes_to_members_and_keys_are_in_the_staff_log(finance: Client) -> None:
    sponsor = make_sponsor()
    owner, newcomer = member_of(sponsor), UserFactory.create()
    path = f"/api/sponsors/{sponsor.slug}"
    call(owner, "put", f"{path}/members", address=newcomer.profile_address, role="viewer")
    call(owner, "put", f"{path}/members", address=newcomer.profile_address, role="manager")
    call(newcomer, "delete", f"{path}/members/{newcomer.profile_address}")
    made = call(owner, "post", f"{path}/keys", name="server", scopes=["read"]).body["key"]["key"]
    call(owner, "post", f"{path}/keys/{made}/rotate")
    call(owner, "delete", f"{path}/keys/{made}")
    logged = [
        (entry.user_id, audit.sentence_of(entry), audit.details_of(entry)["changes"])
        for entry in LogEntry.objects.order_by("pk")
    ]
    role = f"role of person {newcomer.pk}"
    assert logged == [
        (owner.pk, "change a member", {role: ["", "viewer"]}),
        (owner.pk, "change a member", {role: ["viewer", "manager"]}),
        (newcomer.pk, "change a member", {role: ["manager", ""]}),
        *(
            (owner.pk, what, {"scopes": ["", "read"]})
            for what in ("make a key", "make a key", "revoke a key")
        ),
    ]
    assert str(newcomer.profile_address)[2:] not in "".join(map(str, logged))
    page = finance.get("/admin/gateway_admin/staffaction/").content.decode()
    assert page.count("Change a member") == 3
