"""Sponsors that people open alone: how many, what they may pay, and what ends them. Many try at the same moment."""

import random
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db import IntegrityError
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditAccount, EntrySource
from credits.services import holds
from gateway.common.errors import DomainError
from gateway.staff import approvals, audit
from gateway.staff.approval_kinds import RequestOutdated
from gateway.staff.models import ApprovalRequest
from sponsors.errors import (
    OpeningsUsed,
    SelfServiceOff,
    SponsorNameTaken,
    StaffDecide,
    TermsRefused,
    TooManySponsors,
)
from sponsors.models import BudgetUse, Member, Policy, PolicyVersion, Sponsor, SponsoredCall, VoucherSigner
from sponsors.services import budgets, holding, policies, self_service, usage
from tests.credits.causes import differences
from tests.database import rewrite
from tests.factories import UserFactory, random_address
from tests.sponsors.sponsorships import make_policy, make_sponsor, new_version
from tests.sponsors.test_paying_together import assert_agree, pay, pay_at_once
from tests.staff import browser_of, confirm, everything, member
from tests.threads import at_once, waits_for_this_transaction
from users.errors import AccountBanned
from users.models import User
from users.services import bans

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 64


def opened(user: User, slug: str = "") -> Sponsor:
    name = slug or f"s-{secrets.token_hex(6)}"
    return self_service.open_sponsor(user=user, slug=name, name="My dApp", now=timezone.now())


def budgeted(*, day: int, month: int, credits: int = 10**6) -> Sponsor:
    """Return a sponsor with this budget."""
    sponsor = make_sponsor(credits)
    Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=day, month_credits=month)
    sponsor.refresh_from_db()
    return sponsor


def counted(sponsor: Sponsor) -> dict[str, int]:
    return dict(BudgetUse.objects.filter(sponsor=sponsor).values_list("scope", "credits"))


# --- Opening


def test_an_opened_sponsor_has_the_budget_of_new_ones_its_owner_and_no_credits(settings: Settings) -> None:
    settings.SPONSOR_SELF_SERVICE_DAY_CREDITS = day = random.randint(1, 999)
    settings.SPONSOR_SELF_SERVICE_MONTH_CREDITS = month = random.randint(1_000, 9_999)
    user = UserFactory.create()
    sponsor = opened(user)
    sponsor.refresh_from_db()
    assert (sponsor.day_credits, sponsor.month_credits, sponsor.opened_by) == (day, month, user)
    assert CreditAccount.objects.get(sponsor=sponsor).balance == 0
    assert Member.objects.get(sponsor=sponsor).role == "owner"
    assert differences(EntrySource.STAFF_ADJUSTMENT) == []


def test_a_profile_opens_as_many_as_it_may_however_many_tries_come_at_once(settings: Settings) -> None:
    settings.SPONSOR_SELF_SERVICE_PER_PROFILE = most = random.randint(1, 3)
    settings.SPONSOR_SELF_SERVICE_PER_DAY = AT_ONCE
    user = UserFactory.create()
    outcomes = at_once([partial(opened, user) for _ in range(AT_ONCE)])
    assert sum(isinstance(one, Sponsor) for one in outcomes) == most
    assert {type(one) for one in outcomes} == {Sponsor, TooManySponsors}
    assert Sponsor.objects.count() == CreditAccount.objects.filter(sponsor__isnull=False).count() == most


def test_a_day_has_as_many_openings_as_the_operator_allows_for_all_profiles_together(
    settings: Settings,
) -> None:
    settings.SPONSOR_SELF_SERVICE_PER_DAY = most = random.randint(2, 9)
    users = UserFactory.create_batch(AT_ONCE)
    outcomes = at_once([partial(opened, user) for user in users])
    assert sum(isinstance(one, Sponsor) for one in outcomes) == most
    refused = [one for one in outcomes if isinstance(one, DomainError)]
    assert {type(one) for one in refused} == {OpeningsUsed}
    assert all(86_000 < one.retry_after <= 86_401 for one in refused if one.retry_after)
    assert Sponsor.objects.count() == Member.objects.count() == most
    # The next day has places again.
    Sponsor.objects.update(created_at=timezone.now() - timedelta(hours=24, seconds=1))
    assert isinstance(
        opened(users[-1] if isinstance(outcomes[-1], DomainError) else UserFactory.create()), Sponsor
    )


def test_a_name_is_given_once_however_many_ask_for_it_at_once(settings: Settings) -> None:
    settings.SPONSOR_SELF_SERVICE_PER_DAY = AT_ONCE + 1
    name = f"s-{secrets.token_hex(6)}"
    outcomes = at_once([partial(opened, user, name) for user in UserFactory.create_batch(AT_ONCE)])
    assert sum(isinstance(one, Sponsor) for one in outcomes) == 1
    assert {type(one) for one in outcomes} == {Sponsor, SponsorNameTaken}
    assert (
        Sponsor.objects.count()
        == Member.objects.count()
        == CreditAccount.objects.filter(user=None).count()
        == 1
    )


def test_a_taken_name_the_switch_and_a_closed_account_refuse_an_opening(settings: Settings) -> None:
    taken, user, banned = make_sponsor(0), UserFactory.create(), UserFactory.create()
    with pytest.raises(SponsorNameTaken):
        opened(user, taken.slug)
    User.objects.filter(pk=banned.pk).update(is_active=False)
    with pytest.raises(AccountBanned):
        opened(banned)
    settings.SPONSOR_SELF_SERVICE = False
    with pytest.raises(SelfServiceOff):
        opened(user)
    assert Sponsor.objects.get() == taken
    assert not Member.objects.exists()


# --- The budget


@pytest.mark.parametrize("scope", ["day", "month"])
def test_calls_at_once_of_several_policies_exceed_no_budget(scope: str) -> None:
    part, fits = random.randint(2, 50), random.randint(1, AT_ONCE - 1)
    limit = part * fits + part - 1
    sponsor = budgeted(day=limit if scope == "day" else 10**6, month=limit if scope == "month" else 10**6)
    versions = [make_policy(sponsor, position=place) for place in range(4)]
    users = UserFactory.create_batch(AT_ONCE)
    outcomes = at_once([partial(pay, versions[place % 4], user, part) for place, user in enumerate(users)])
    assert outcomes.count(None) == fits
    assert set(outcomes) == {None, "sponsor-budget"}
    assert counted(sponsor) == {"day": part * fits, "month": part * fits}
    assert CreditAccount.objects.get(sponsor=sponsor).held == part * fits


def test_a_batch_is_paid_up_to_the_budget_and_other_sponsors_are_not_concerned() -> None:
    part = random.randint(2, 50)
    sponsor, other = budgeted(day=2 * part + 1, month=10**6), make_sponsor(10**6)
    ours, theirs = make_policy(sponsor), make_policy(other)
    users = UserFactory.create_batch(5)
    wanted = [(ours, part), (ours, part), (theirs, part), (ours, part), (ours, 1)]
    outcomes = pay_at_once(
        *((version, user, cost, None) for (version, cost), user in zip(wanted, users, strict=True))
    )
    assert outcomes == [None, None, None, "sponsor-budget", None]
    assert counted(sponsor)["day"] == 2 * part + 1
    assert_agree(sponsor)
    assert_agree(other)
    assert not BudgetUse.objects.filter(sponsor=other).exists()


def test_what_a_call_did_not_cost_is_free_again_and_each_day_begins_anew() -> None:
    limit = random.randint(100, 10_000)
    sponsor = budgeted(day=limit, month=2 * limit)
    version = make_policy(sponsor)
    assert pay(version, UserFactory.create(), limit) is None
    assert pay(version, UserFactory.create(), 1) == "sponsor-budget"
    call = SponsoredCall.objects.get()
    holds.close(costs={call.hold_id: 0, call.sponsor_hold_id: limit - 10})
    holding.recount(hold_ids=[call.hold_id])
    assert counted(sponsor) == {"day": limit - 10, "month": limit - 10}
    assert pay(version, UserFactory.create(), 11) == "sponsor-budget"
    assert pay(version, UserFactory.create(), 10) is None
    # The calls were of yesterday: the day is free, the month is not, unless it began today.
    BudgetUse.objects.filter(scope="day").update(begins=timezone.now() - timedelta(days=1))
    rewrite(SponsoredCall.objects.all(), accepted_at=timezone.now() - timedelta(days=1))
    assert pay(version, UserFactory.create(), limit) is None
    assert pay(version, UserFactory.create(), 1) == "sponsor-budget"


def test_a_budget_that_is_set_later_counts_the_calls_of_its_period_before_it() -> None:
    sponsor = make_sponsor()
    version = make_policy(sponsor)
    assert pay(version, UserFactory.create(), 300) is None
    Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=500, month_credits=5_000)
    assert pay(version, UserFactory.create(), 201) == "sponsor-budget"
    assert pay(version, UserFactory.create(), 200) is None
    assert counted(sponsor) == {"day": 500, "month": 500}


def test_a_count_that_was_changed_past_the_service_is_found_and_corrected() -> None:
    sponsor = budgeted(day=1_000, month=1_000)
    version = make_policy(sponsor)
    assert pay(version, UserFactory.create(), 300) is None
    rule = "budget use is what the calls of the sponsor count"
    assert rule not in rules()
    BudgetUse.objects.filter(sponsor=sponsor, scope="day").update(credits=0)
    assert rule in rules()
    assert usage.correct() == 1
    assert rule not in rules()
    assert pay(version, UserFactory.create(), 701) == "sponsor-budget"


def rules() -> list[str]:
    return [finding["rule"] for finding in differences(EntrySource.STAFF_ADJUSTMENT)]


# --- Terms, signers and the budget itself


def test_an_owner_writes_terms_and_signers_which_the_nightly_comparison_finds_in_the_log() -> None:
    owner = UserFactory.create()
    sponsor = opened(owner)
    terms = {"call_credits": random.randint(1, 999), "user_calls": 3, "campaign_credits": 10_000}
    first = self_service.save_terms(sponsor=sponsor, name="first-calls", terms=terms, actor=owner)
    second = self_service.save_terms(
        sponsor=sponsor, name="first-calls", terms=terms | {"user_calls": 4}, actor=owner
    )
    third = self_service.save_terms(sponsor=sponsor, name="others", terms=terms, actor=owner)
    assert [(each.policy.name, each.policy.position, each.number) for each in (first, second, third)] == [
        ("first-calls", 0, 1),
        ("first-calls", 0, 2),
        ("others", 1, 1),
    ]
    address = random_address()
    signer = self_service.add_signer(sponsor=sponsor, address=address, actor=owner)
    assert self_service.add_signer(sponsor=sponsor, address=address, actor=owner) == signer
    assert rules() == []
    new_version(second.policy, call_credits=1, created_by=owner)
    VoucherSigner.objects.create(sponsor=sponsor, address=random_address(), created_by=owner)
    Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=10**9)
    assert set(rules()) == {
        "terms of an owner are those in the audit log",
        "a voucher signer of an owner is in the audit log",
        "the budget of a sponsor is the approved one, or that of its opening",
    }


def test_without_a_budget_staff_decide_and_terms_that_contradict_each_other_are_refused() -> None:
    owner, staffed = UserFactory.create(), make_sponsor()
    policy = make_policy(staffed).policy
    before = everything()
    with pytest.raises(StaffDecide):
        self_service.save_terms(sponsor=staffed, name=policy.name, terms={"call_credits": 1}, actor=owner)
    with pytest.raises(StaffDecide):
        self_service.add_signer(sponsor=staffed, address=random_address(), actor=owner)
    with pytest.raises(StaffDecide):
        self_service.switch(policy=policy, is_enabled=False, actor=owner)
    assert everything() == before
    sponsor = opened(owner)
    before = everything()
    with pytest.raises(TermsRefused):
        self_service.save_terms(
            sponsor=sponsor, name="x", terms={"call_credits": 1, "profiles": "new"}, actor=owner
        )
    assert everything() == before


def test_a_sponsor_has_a_bounded_number_of_policies_however_many_are_written_at_once() -> None:
    owner = UserFactory.create()
    sponsor = opened(owner)
    write = partial(self_service.save_terms, sponsor=sponsor, terms={"call_credits": 1}, actor=owner)
    outcomes = at_once([partial(write, name=f"p-{place}") for place in range(AT_ONCE)])
    most = self_service.MOST_POLICIES
    assert sum(isinstance(one, PolicyVersion) for one in outcomes) == most
    assert {type(one) for one in outcomes} == {PolicyVersion, TermsRefused}
    assert sorted(Policy.objects.values_list("position", flat=True)) == list(range(most))


def test_a_sponsor_has_a_bounded_number_of_signers_however_many_are_added_at_once() -> None:
    owner = UserFactory.create()
    sponsor = opened(owner)
    add = partial(self_service.add_signer, sponsor=sponsor, actor=owner)
    outcomes = at_once([partial(add, address=random_address()) for _ in range(AT_ONCE)])
    most = self_service.MOST_SIGNERS
    assert sum(isinstance(one, VoucherSigner) for one in outcomes) == most
    assert {type(one) for one in outcomes} == {VoucherSigner, TermsRefused}
    assert VoucherSigner.objects.count() == most
    # A removed one makes room.
    self_service.remove_signer(signer=VoucherSigner.objects.earliest("pk"), actor=owner)
    self_service.add_signer(sponsor=sponsor, address=random_address(), actor=owner)
    assert VoucherSigner.objects.filter(removed_at=None).count() == most


def test_an_owner_changes_nothing_alone_once_staff_have_ended_the_budget() -> None:
    owner = UserFactory.create()
    sponsor = opened(owner)
    write = partial(
        self_service.save_terms, sponsor=sponsor, name="x", terms={"call_credits": 1}, actor=owner
    )
    policy = write().policy
    policy.sponsor = sponsor
    before: dict[str, object] = {}
    changes: list[Callable[[], object]] = [
        write,
        partial(self_service.add_signer, sponsor=sponsor, address=random_address(), actor=owner),
        partial(self_service.switch, policy=policy, is_enabled=False, actor=owner),
    ]
    for change in changes:
        Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=1, month_credits=1)
        sponsor.refresh_from_db()
        with waits_for_this_transaction(change) as waiting:
            # A request has read the sponsor before its budget ended.
            Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=None, month_credits=None)
            before = everything()
        assert isinstance(waiting.result(), StaffDecide)
        assert everything() == before


def test_what_staff_have_switched_off_no_owner_switches_on() -> None:
    owner = UserFactory.create()
    sponsor = opened(owner)
    policy = self_service.save_terms(sponsor=sponsor, name="x", terms={"call_credits": 1}, actor=owner).policy
    self_service.switch(policy=policy, is_enabled=False, actor=owner)
    self_service.switch(policy=policy, is_enabled=True, actor=owner)
    confirm(browser_of(member("operations")), "sponsors_policy", "switch_off", policy)
    with pytest.raises(StaffDecide):
        self_service.switch(policy=policy, is_enabled=True, actor=owner)
    assert not Policy.objects.get(pk=policy.pk).is_enabled
    confirm(browser_of(member("operations")), "sponsors_policy", "switch_on", policy)
    for is_enabled in (False, True):
        self_service.switch(policy=policy, is_enabled=is_enabled, actor=owner)
        assert Policy.objects.get(pk=policy.pk).is_enabled == is_enabled
    assert rules() == []


def test_an_owner_who_switches_a_policy_on_waits_for_staff_who_switch_it_off() -> None:
    owner, staff = UserFactory.create(), member("operations")
    sponsor = opened(owner)
    policy = self_service.save_terms(sponsor=sponsor, name="x", terms={"call_credits": 1}, actor=owner).policy
    switch_on = partial(self_service.switch, policy=policy, is_enabled=True, actor=owner)
    with waits_for_this_transaction(switch_on) as waiting:
        policies.enable(policy, is_enabled=False)
        audit.record(actor=staff, row=policy, action="switch_off", reason="abuse")
    assert isinstance(waiting.result(), StaffDecide)
    assert not Policy.objects.get(pk=policy.pk).is_enabled


def test_a_larger_budget_takes_two_members_of_staff() -> None:
    sponsor = opened(UserFactory.create())
    finance, day = member("finance"), random.randint(10**5, 10**6)
    request = budgets.request(
        sponsor=sponsor, day=day, month=20 * day, key=secrets.token_hex(8), actor=finance, reason="grows"
    )
    sponsor.refresh_from_db()
    assert sponsor.day_credits != day
    with pytest.raises(DomainError):
        approvals.approve(request_id=request.pk, actor=finance, reason="mine")
    approvals.approve(request_id=request.pk, actor=member("operations"), reason="agreed")
    sponsor.refresh_from_db()
    assert (sponsor.day_credits, sponsor.month_credits) == (day, 20 * day)
    assert rules() == []


def request_budget(sponsor: Sponsor, day: int | None, month: int | None) -> ApprovalRequest:
    return budgets.request(
        sponsor=sponsor, day=day, month=month, key=secrets.token_hex(8), actor=member("finance"), reason="x"
    )


def test_an_approval_does_not_undo_a_budget_that_was_set_after_its_request() -> None:
    sponsor = opened(UserFactory.create())
    first, second = request_budget(sponsor, 10**6, 10**7), request_budget(sponsor, 7, 70)
    operations = member("operations")
    approvals.approve(request_id=second.pk, actor=operations, reason="agreed")
    with pytest.raises(RequestOutdated):
        approvals.approve(request_id=first.pk, actor=operations, reason="agreed")
    sponsor.refresh_from_db()
    assert (sponsor.day_credits, sponsor.month_credits) == (7, 70)


def test_a_new_budget_waits_for_calls_that_are_being_paid_and_counts_them() -> None:
    sponsor = make_sponsor()
    version, request = make_policy(sponsor), request_budget(sponsor, 100, 100)
    approve = partial(approvals.approve, request_id=request.pk, actor=member("operations"), reason="agreed")
    with waits_for_this_transaction(approve) as waiting:
        assert pay(version, UserFactory.create(), 60) is None
    assert not isinstance(waiting.result(), DomainError)
    assert pay(version, UserFactory.create(), 41) == "sponsor-budget"
    assert pay(version, UserFactory.create(), 40) is None


@pytest.mark.parametrize(("day", "month"), [(None, 5), (5, None), (0, 5), (5, 0), (-1, 5)])
def test_half_a_budget_is_not_requested_and_not_stored(day: int | None, month: int | None) -> None:
    sponsor = opened(UserFactory.create())
    before = everything()
    with pytest.raises(ValueError, match="two parts"):
        request_budget(sponsor, day, month)
    with pytest.raises(IntegrityError):
        Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=day, month_credits=month)
    assert everything() == before


def test_a_budget_that_staff_lower_and_raise_again_has_counted_the_calls_between() -> None:
    sponsor = budgeted(day=100, month=1_000)
    version = make_policy(sponsor)
    assert pay(version, UserFactory.create(), 100) is None
    approvals.approve(
        request_id=request_budget(sponsor, None, None).pk, actor=member("operations"), reason="agreed"
    )
    assert pay(version, UserFactory.create(), 500) is None
    sponsor.refresh_from_db()
    approvals.approve(
        request_id=request_budget(sponsor, 700, 1_000).pk, actor=member("operations"), reason="agreed"
    )
    assert pay(version, UserFactory.create(), 101) == "sponsor-budget"
    assert pay(version, UserFactory.create(), 100) is None
    assert counted(sponsor) == {"day": 700, "month": 700}


# --- Bans, and owners who leave


def test_a_ban_freezes_what_the_person_opened_or_owns_and_nothing_else() -> None:
    abuser, other, colleague = UserFactory.create_batch(3)
    ours, shared, theirs, staffed = opened(abuser), opened(other), opened(colleague), make_sponsor()
    passed_on = opened(abuser)
    Member.objects.filter(sponsor=passed_on).delete()
    Member.objects.create(sponsor=passed_on, user=other, role="owner")
    for sponsor in (shared, staffed):
        Member.objects.create(sponsor=sponsor, user=abuser, role="owner")
    Member.objects.create(sponsor=theirs, user=abuser, role="viewer")
    bans.ban(user=abuser, actor=member("support"), reason="abuse", now=timezone.now())
    frozen = set(Sponsor.objects.filter(is_frozen=True))
    assert frozen == {ours, shared, passed_on}


def test_an_opening_and_a_ban_at_the_same_moment_leave_no_sponsor_that_pays() -> None:
    support = member("support")
    for _ in range(8):
        user = UserFactory.create()
        ban = partial(bans.ban, user=user, actor=support, reason="abuse", now=timezone.now())
        calls: list[Callable[[], object]] = [partial(opened, user), ban, partial(opened, user)]
        at_once(calls)
        assert not Sponsor.objects.filter(opened_by=user, is_frozen=False).exists()


def test_a_sponsor_whose_last_owner_deletes_the_account_is_frozen_and_keeps_its_credits() -> None:
    owner, second = UserFactory.create_batch(2)
    left, kept, staffed = opened(owner), opened(owner), make_sponsor()
    Member.objects.create(sponsor=kept, user=second, role="owner")
    Member.objects.create(sponsor=left, user=second, role="manager")
    Member.objects.create(sponsor=staffed, user=owner, role="owner")
    self_service.forget(owner)
    assert set(Sponsor.objects.filter(is_frozen=True)) == {left}
    assert not Member.objects.filter(user=owner).exists()
    # Staff give it an owner and end the freeze.
    policies.freeze(left, is_frozen=False)
    assert not Sponsor.objects.get(pk=left.pk).is_frozen
