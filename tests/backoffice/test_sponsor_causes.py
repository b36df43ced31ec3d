"""Terms and counts of sponsors that no approval, call or log entry has caused are refused, or found."""

import random
import secrets

import pytest
from django.core.management import call_command
from django.db import DatabaseError, transaction
from django.test import Client
from django.utils import timezone

from credits.models import EntrySource
from credits.services import holds
from sponsors.models import (
    Member,
    Policy,
    PolicyVersion,
    Sponsor,
    SponsoredCall,
    Usage,
    UsedVoucher,
    VoucherSigner,
)
from sponsors.services import holding, members
from tests.credits.causes import differences
from tests.credits.holding import place_hold
from tests.database import tamper
from tests.factories import UserFactory, make, random_address
from tests.sponsors.sponsorships import make_policy, make_sponsor, pay
from tests.staff import browser_of, confirm, member, saved

pytestmark = pytest.mark.django_db
ADD_VERSION = "/admin/sponsors/policyversion/add/"
ADD_SIGNER = "/admin/sponsors/vouchersigner/add/"


@pytest.fixture
def finance() -> Client:
    return browser_of(member("finance"))


def _rules() -> list[str]:
    return [finding["rule"] for finding in differences(EntrySource.STAFF_ADJUSTMENT)]


def _approved_version(finance: Client, policy: Policy, **terms: object) -> PolicyVersion:
    body = {
        "policy": policy.pk,
        "targets": "[]",
        "purpose": "calls",
        "profiles": "all",
        "listed": "",
        "share_percent": 100,
        **terms,
    }
    saved(finance, ADD_VERSION, body, role="operations")
    return PolicyVersion.objects.get(policy=policy)


def _paid(version: PolicyVersion, part: int) -> SponsoredCall:
    user = UserFactory.create()
    hold = place_hold(user=user, credits=0, key=secrets.token_hex(8)).hold
    now = timezone.now()
    assert (
        pay(version, hold_id=hold.pk, user_id=user.pk, key=secrets.token_hex(8), part=part, now=now) is None
    )
    return SponsoredCall.objects.get(hold=hold)


def test_terms_that_were_approved_have_a_cause_and_others_have_none(finance: Client) -> None:
    policy = make(Policy, sponsor=make_sponsor())
    version = _approved_version(
        finance, policy, call_credits=random.randint(1, 10**6), campaign_credits=random.randint(1, 10**9)
    )
    assert _rules() == []
    PolicyVersion.objects.create(policy=policy, number=2, call_credits=version.call_credits)
    assert _rules() == ["terms of a policy were approved"]


def test_terms_that_differ_from_the_approved_ones_are_found(finance: Client) -> None:
    version = _approved_version(finance, make(Policy, sponsor=make_sponsor()), call_credits=500)
    for change in (
        "UPDATE sponsors_policyversion SET call_credits = 501 WHERE id = %s",
        "UPDATE sponsors_policyversion SET (call_credits, campaign_credits) = (500, 1) WHERE id = %s",
        "UPDATE sponsors_policyversion SET (campaign_credits, profiles) = (NULL, 'vouched') WHERE id = %s",
    ):
        assert _rules() == []
        tamper(change, version.pk)
        assert _rules() == ["terms of a policy were approved"]
        tamper(
            "UPDATE sponsors_policyversion SET (call_credits, campaign_credits, profiles) = (500, NULL, 'all')"
            " WHERE id = %s",
            version.pk,
        )


def test_terms_for_new_profiles_that_differ_from_the_approved_ones_are_found(finance: Client) -> None:
    policy = make(Policy, sponsor=make_sponsor())
    limits = {"window_seconds": 86_400, "window_calls": random.randint(1, 999)}
    version = _approved_version(finance, policy, purpose="profiles", call_credits=500, **limits)
    for change in (
        "UPDATE sponsors_policyversion SET purpose = 'calls' WHERE id = %s",
        "UPDATE sponsors_policyversion SET window_calls = window_calls + 1 WHERE id = %s",
        "UPDATE sponsors_policyversion SET campaign_calls = 1 WHERE id = %s",
    ):
        assert _rules() == []
        tamper(change, version.pk)
        assert _rules() == ["terms of a policy were approved"]
        tamper(
            "UPDATE sponsors_policyversion SET (purpose, window_calls, campaign_calls) = ('profiles', %s, NULL)"
            " WHERE id = %s",
            limits["window_calls"],
            version.pk,
        )


def test_a_signer_of_vouchers_was_approved_and_neither_changes_nor_returns(finance: Client) -> None:
    sponsor, address = make_sponsor(), random_address()
    saved(finance, ADD_SIGNER, {"sponsor": sponsor.pk, "address": address.lower()}, role="operations")
    signer = VoucherSigner.objects.get()
    assert _rules() == []
    VoucherSigner.objects.create(sponsor=sponsor, address=random_address())
    assert _rules() == ["a voucher signer was approved"]
    confirm(finance, "sponsors_vouchersigner", "remove_signer", signer)
    for values in ({"removed_at": None}, {"address": random_address()}):
        with pytest.raises(DatabaseError), transaction.atomic():
            VoucherSigner.objects.filter(pk=signer.pk).update(**values)
    signer.refresh_from_db()
    assert (signer.address, signer.removed_at is None) == (address, False)


@pytest.mark.parametrize("counter", ["credits", "calls"])
def test_a_counter_that_differs_from_its_calls_is_found(finance: Client, counter: str) -> None:
    version = _approved_version(finance, make(Policy, sponsor=make_sponsor()), call_credits=500)
    _paid(version, 200)
    assert _rules() == []
    Usage.objects.filter(policy=version.policy, scope="campaign").update(**{counter: 0})
    assert _rules() == ["usage is what the calls of the policy count"]
    Usage.objects.filter(policy=version.policy, scope="user").delete()
    stray = make(Usage, policy=version.policy, scope="user", user_number=0, begins=timezone.now(), credits=9)
    call_command("correct_usage")
    assert _rules() == []
    assert Usage.objects.get(pk=stray.pk).credits == 0
    assert set(Usage.objects.exclude(pk=stray.pk).values_list("credits", "calls")) == {(200, 1)}


def test_a_counter_that_is_too_low_does_not_stop_settlement(finance: Client) -> None:
    version = _approved_version(finance, make(Policy, sponsor=make_sponsor()), call_credits=500)
    call, other = _paid(version, 200), _paid(version, 300)
    Usage.objects.filter(policy=version.policy).update(credits=0, calls=0)
    holds.close(costs={call.hold_id: 0, call.sponsor_hold_id: 0})
    holding.recount(hold_ids=[call.hold_id])
    call.refresh_from_db()
    assert (call.counted_credits, call.counted_calls) == (0, 0)
    assert set(Usage.objects.filter(policy=version.policy).values_list("credits", "calls")) == {(0, 0)}
    assert set(_rules()) == {"usage is what the calls of the policy count"}
    assert other.sponsor_hold.status == "HELD"


def test_a_call_that_counts_less_than_its_hold_is_found(finance: Client) -> None:
    call = _paid(_approved_version(finance, make(Policy, sponsor=make_sponsor()), call_credits=500), 200)
    SponsoredCall.objects.filter(pk=call.pk).update(counted_credits=199)
    assert _rules()[0] == "a call counts what its hold takes"


def test_the_rows_of_a_call_cannot_be_exchanged(finance: Client) -> None:
    policy = make(Policy, sponsor=make_sponsor())
    call = _paid(_approved_version(finance, policy, call_credits=500), 200)
    other = make_policy(make_sponsor())
    with pytest.raises(DatabaseError), transaction.atomic():
        SponsoredCall.objects.filter(pk=call.pk).update(version=other)
    with pytest.raises(DatabaseError), transaction.atomic():
        Sponsor.objects.filter(pk=policy.sponsor_id).update(slug="another")


def test_a_call_for_a_voucher_has_used_one_that_a_signer_of_its_sponsor_signed(finance: Client) -> None:
    sponsor = make_sponsor()
    policy, address = make(Policy, sponsor=sponsor), random_address()
    saved(finance, ADD_SIGNER, {"sponsor": sponsor.pk, "address": address}, role="operations")
    version = _approved_version(finance, policy, profiles="vouched", call_credits=500)
    call = _paid(version, 100)
    assert _rules() == ["a voucher is used by a call of its sponsor"]
    voucher = make(UsedVoucher, sponsor=sponsor, signer=address, call=call)
    assert _rules() == []
    with pytest.raises(DatabaseError), transaction.atomic():
        UsedVoucher.objects.filter(pk=voucher.pk).update(signer=random_address())
    UsedVoucher.objects.all().delete()
    make(UsedVoucher, sponsor=sponsor, signer=random_address(), call=call)
    assert _rules() == ["a voucher is used by a call of its sponsor"]


def test_a_member_has_the_role_that_the_audit_log_gave(finance: Client) -> None:
    sponsor, owner, other = make_sponsor(), UserFactory.create(), UserFactory.create()
    confirm(finance, "sponsors_sponsor", "put_member", sponsor, profile=owner.profile_address, role="owner")
    members.put(sponsor=sponsor, profile_address=str(other.profile_address), role="viewer", actor=owner)
    assert _rules() == []
    Member.objects.filter(user=other).update(role="owner")
    assert _rules() == ["a member has the role that the audit log gave"]
    members.put(sponsor=sponsor, profile_address=str(other.profile_address), role="manager", actor=owner)
    assert _rules() == []
    make(Member, sponsor=sponsor, user=UserFactory.create(), role="owner", email=None)
    assert _rules() == ["a member has the role that the audit log gave"]


@pytest.mark.parametrize(
    ("model", "off", "on", "past_the_service"),
    [
        ("sponsors_sponsor", "freeze", "thaw", {"is_frozen": False}),
        ("sponsors_policy", "switch_off", "switch_on", {"is_enabled": True}),
    ],
)
def test_what_staff_have_switched_off_is_off(
    finance: Client, model: str, off: str, on: str, past_the_service: dict[str, bool]
) -> None:
    policy = make(Policy, sponsor=make_sponsor())
    row = policy if model == "sponsors_policy" else policy.sponsor
    operations = browser_of(member("operations"))
    confirm(operations, model, off, row)
    assert _rules() == []
    type(row)._default_manager.filter(pk=row.pk).update(**past_the_service)
    assert _rules() == ["what staff have switched off is off"]
    confirm(operations, model, off, type(row)._default_manager.get(pk=row.pk))
    confirm(operations, model, on, row)
    assert _rules() == []
