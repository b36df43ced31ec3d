"""
Who asks for what makes or prices credits, who decides, and what one person does alone: the table of docs/staff.md.

Every kind is tried by every role: below its limit, above it, above the limit of the day, then decided by the asker, by
another member of the same role, and by a member of each other role.
"""

import secrets
import uuid
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from django.conf import settings as project
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings

from accounting.models import Month
from accounting.services.closing import digest_of
from backoffice.roles import ROLES
from checkin.models import DropTable
from checkin.services import drop_tables
from credits.models import CreditEntry, ExpiryRule, UnbackedCeiling
from credits.services import adjustments
from credits.services.causes import find_differences as find_causes
from earnings.models import AdNetwork, Postback
from earnings.services import earnings, networks, push, unassigned
from gateway.chain.signing import set_signer
from gateway.common.errors import PermissionDenied
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import AnotherRoleDecides, OwnRequest
from gateway.staff.models import ApprovalRequest
from payments.models import CreditPack, Payout, PayoutRate, Refund
from payments.services import refunds
from relay.models import CreditPrice, Relayer
from relay.queries.prices import current_price
from relay.services.fleet import relayers
from rewards.models import Badge, Modifier, ModifierType
from rewards.services import modifiers
from sponsors.models import Policy, PolicyVersion, Sponsor, Verifier, VoucherSigner
from sponsors.services import funding
from tests.docs.pages import DOCS, code_spans, rows
from tests.earnings.ad_networks import new_reward, set_up
from tests.factories import RelayerFactory, UserFactory, make, random_address
from tests.sponsors.sponsorships import make_sponsor
from tests.staff import approve, browser_of, confirm, confirmed, member, messages_of
from users.models import Invitation, Phone, TrustedImplementation, User
from users.services import staff

pytestmark = pytest.mark.django_db
ASKERS = {*ROLES, approval_kinds.SUPERUSER}
KINDS = {kind.name: kind for kind in approval_kinds.kinds()}


class Scene(NamedTuple):
    """How to ask for an amount, and the rows' values once it is carried out."""

    ask: Callable[[User, int], ApprovalRequest]
    is_done: Callable[[], bool]


def row_written(name: str, row: Any, /, **values: str) -> Callable[[User, int], ApprovalRequest]:
    """Return how to ask that these fields of the row are written, as a form of the admin does."""

    def ask(actor: User, _: int) -> ApprovalRequest:
        payload = {"values": values, "before": {}}
        return approvals.ask(
            kind=KINDS[name],
            actor=actor,
            reason="x",
            key=secrets.token_hex(8),
            row=row,
            payload=payload,
            changes={},
        )

    return ask


def of_kind(kind: str, row: Any, /, **payload: str) -> Callable[[User, int], ApprovalRequest]:
    def ask(actor: User, _: int) -> ApprovalRequest:
        return approvals.ask(
            kind=KINDS[kind],
            actor=actor,
            reason="x",
            key=secrets.token_hex(8),
            row=row,
            payload=payload,
            changes={},
        )

    return ask


def _adjust() -> Scene:
    user = UserFactory.create()
    return Scene(
        lambda actor, amount: adjustments.request(
            user=user, credits=amount, key=secrets.token_hex(8), actor=actor, reason="x"
        ),
        CreditEntry.objects.exists,
    )


def _modifier() -> Scene:
    user = UserFactory.create()
    return Scene(
        lambda actor, amount: modifiers.request(
            user=user, modifier_type=ModifierType.BONUS_CREDITS_BACK, value=Decimal("0.01"), minutes=1440 * amount,
            key=secrets.token_hex(8), reason="x", actor=actor,
        ),
        Modifier.objects.exists,
    )  # fmt: skip


def _release() -> Scene:
    network = set_up("cpx-research", per_event_cap=10**6, daily_cap=10**6)

    for amount in (1, BELOW, ABOVE):
        network.send(network.reward(UserFactory.create(), amount=str(amount)))
    return _release_of_held()


def _release_of_held() -> Scene:
    def ask(actor: User, amount: int) -> ApprovalRequest:
        held = Postback.objects.get(credits=amount)
        return earnings.request_release(
            postback_id=held.pk, actor=actor, reason="x", key=secrets.token_hex(8)
        )

    return Scene(ask, CreditEntry.objects.exists)


def _release_beyond_cap() -> Scene:
    network = set_up("tapjoy", per_event_cap=1)
    for amount in (2, BELOW, ABOVE):
        network.send(network.reward(UserFactory.create(), amount=str(amount)))
    Postback.objects.filter(credits=2).update(credits=1)
    return _release_of_held()


def _assign() -> Scene:
    network, user = set_up("tapjoy"), UserFactory.create()
    for amount in (1, BELOW, ABOVE):
        network.send(new_reward(amount=str(amount), at=timezone.now()))

    def ask(actor: User, amount: int) -> ApprovalRequest:
        row = Postback.objects.get(amount=amount)
        return unassigned.request_assignment(
            postback_id=row.pk, user=user, actor=actor, reason="x", key=secrets.token_hex(8)
        )

    return Scene(ask, CreditEntry.objects.exists)


def _link_or_report(kind: str) -> Callable[[], Scene]:
    """What the commands ask for; their own tests show how they continue once the request is carried out."""
    user: Any = None

    def ask_for_link(actor: User, amount: int) -> ApprovalRequest:
        return push.request_visit_link(
            user=user, campaign="x", amount=Decimal(amount), lifetime=timedelta(hours=1), actor=actor, reason="x",
            key=secrets.token_hex(8),
        )[0]  # fmt: skip

    def ask_for_report(actor: User, amount: int) -> ApprovalRequest:
        reference = networks.reference_of(user=user, network=networks.ensure(slug="push-report"))
        text = f"row_id,user_reference,amount\n{secrets.token_hex(8)},{reference},{amount}\n"
        return push._request_for(push._read("push-report", text), text, actor, "x")

    def scene() -> Scene:
        nonlocal user
        set_up("visit-link", rate=1)
        networks.configure(slug="push-report", is_enabled=True, rate=1)
        user = UserFactory.create()
        ask = ask_for_link if kind == "mint_visit_link" else ask_for_report
        return Scene(ask, ApprovalRequest.objects.filter(kind=kind, status="done").exists)

    return scene


def _payout_rate() -> Scene:
    begins = timezone.now() + timedelta(days=9)
    values = {"currency": "usd", "credits_per_major_unit": "4321", "valid_from": begins.isoformat()}
    made = PayoutRate.objects.filter(credits_per_major_unit=4321)
    return Scene(row_written("add_payout_rate", PayoutRate(valid_from=begins), **values), made.exists)


def _credit_price() -> Scene:
    price_wei = 2 * project.CREDIT_WEI
    values = {"chain_id": str(project.CHAIN_ID), "credit_wei": str(price_wei)}
    made = CreditPrice.objects.filter(credit_wei=price_wei)
    return Scene(
        row_written("add_credit_price", CreditPrice(chain_id=project.CHAIN_ID), **values), made.exists
    )


def _expiry() -> Scene:
    begins = timezone.now() + timedelta(days=9)
    ask = row_written("set_expiry", ExpiryRule(valid_from=begins), days="365", valid_from=begins.isoformat())
    return Scene(ask, ExpiryRule.objects.exists)


def _month() -> Scene:
    month = Month.objects.create(begins_on=date(2025, 1, 1))
    digest = digest_of(month)
    Month.objects.filter(pk=month.pk).update(status="open", digest=digest)
    return Scene(of_kind("close_month", month, digest=digest), Month.objects.filter(status="closed").exists)


def _unbacked_ceiling() -> Scene:
    made = UnbackedCeiling.objects.filter(credits=321)
    return Scene(row_written("add_unbacked_ceiling", UnbackedCeiling(), credits="321"), made.exists)


def _policy_version() -> Scene:
    policy = make(Policy)
    written = row_written("add_policy_version", PolicyVersion(), policy=str(policy.pk), call_credits="321")
    return Scene(written, PolicyVersion.objects.filter(policy=policy, number=1, call_credits=321).exists)


def _voucher_signer() -> Scene:
    sponsor, address = make(Sponsor), random_address()
    written = row_written("add_voucher_signer", VoucherSigner(), sponsor=str(sponsor.pk), address=address)
    return Scene(written, VoucherSigner.objects.filter(sponsor=sponsor, address=address).exists)


def _verifier() -> Scene:
    sponsor, url = make(Sponsor), f"https://{secrets.token_hex(6)}.example/verify"
    written = row_written("add_verifier", Verifier(), sponsor=str(sponsor.pk), url=url)
    return Scene(written, Verifier.objects.filter(sponsor=sponsor, url=url).exists)


def _sponsor() -> Scene:
    sponsor = make(Sponsor)
    return Scene(
        lambda actor, amount: funding.request(
            sponsor=sponsor, credits=amount, key=secrets.token_hex(8), actor=actor, reason="x"
        ),
        CreditEntry.objects.filter(account__sponsor=sponsor).exists,
    )


def _budget() -> Scene:
    sponsor = make_sponsor(0)
    changed = Sponsor.objects.filter(pk=sponsor.pk, day_credits=321)
    ask = of_kind("set_sponsor_budget", sponsor, budget="321/4321", before="-")
    return Scene(ask, changed.exists)


def _credit_pack() -> Scene:
    pack = CreditPack.objects.order_by("pk")[0]
    changed = CreditPack.objects.filter(pk=pack.pk, bonus_credits=321)
    return Scene(row_written("save_credit_pack", pack, bonus_credits="321"), changed.exists)


def _badge() -> Scene:
    badge = Badge.objects.latest("exp_lower_bound")
    changed = Badge.objects.filter(pk=badge.pk, acceptable_credit_debt=4321)
    return Scene(row_written("save_badge", badge, acceptable_credit_debt="4321"), changed.exists)


def _badge_removal() -> Scene:
    badge = Badge.objects.filter(track="PERMANENT").latest("exp_lower_bound")
    left = Badge.objects.filter(pk=badge.pk)
    ask = of_kind("remove_badge", badge, exp_lower_bound=str(badge.exp_lower_bound))
    return Scene(ask, lambda: not left.exists())


def _drop_table() -> Scene:
    badge = Badge.objects.get(track="PERMANENT", exp_lower_bound=0)
    table = DropTable.objects.filter(badge=badge).latest("pk")
    draft = drop_tables.create_draft(badge=badge, author=member("finance"), like=table)
    return Scene(
        lambda actor, _: drop_tables.request_publication(
            table_id=draft.pk, actor=actor, reviewed=[drop_tables.fingerprint_of(draft)], reason="x",
            key=secrets.token_hex(8),
        ),
        DropTable.objects.filter(pk=draft.pk, published_at__isnull=False).exists,
    )  # fmt: skip


def _network(kind: str) -> Callable[[], Scene]:
    def scene() -> Scene:
        row = set_up("tapjoy").row
        stored = AdNetwork.objects.filter(pk=row.pk)
        if kind == "configure_ad_network":
            return Scene(row_written(kind, row, rate="7"), stored.filter(rate=7).exists)
        if kind == "set_network_secret":
            ask = of_kind(kind, row, sealed=networks.sealed("new"))
            return Scene(ask, lambda: "new" in networks.live_secrets(stored.get()))
        return Scene(of_kind(kind, row, token_hash="4321"), stored.filter(path_token_hash="4321").exists)

    return scene


def _trusted_code() -> Scene:
    address = random_address()
    values = {"kind": "profile", "name": "x", "address": address}
    made = TrustedImplementation.objects.filter(address=address)
    return Scene(row_written("save_trusted_code", TrustedImplementation(**values), **values), made.exists)


def _relayer() -> Scene:
    return Scene(
        lambda actor, _: relayers.request_relayer(actor=actor, reason="x", key=secrets.token_hex(8)),
        lambda: bool(relayers._approved()),
    )


def _refund() -> Scene:
    payout = make(Payout)

    def ask(actor: User, amount: int) -> ApprovalRequest:
        shown = refunds.Preview(
            payout=payout, amount_minor=amount, returned_minor=0, taken_before=0, credits=amount, available=0,
            debt_limit=0,
        )  # fmt: skip
        return refunds.request(preview=shown, actor=actor, reason="x", key=secrets.token_hex(8))

    return Scene(ask, Refund.objects.exists)


def _returning_relayer() -> Scene:
    row = RelayerFactory.create(is_active=False, retired_at=timezone.now())
    back = Relayer.objects.filter(pk=row.pk, retired_at=None)
    return Scene(
        lambda actor, _: relayers.request_return(
            relayer_id=row.pk, actor=actor, reason="x", key=secrets.token_hex(8)
        ),
        back.exists,
    )


def _account() -> Scene:
    made = User.objects.filter(username="new", is_staff=True)
    return Scene(row_written("save_staff", User(username="new"), username="new"), made.exists)


def _password() -> Scene:
    person = member("support")

    def ask(actor: User, _: int) -> ApprovalRequest:
        return staff.request_password(person=person, actor=actor, reason="x", key=secrets.token_hex(8))

    return Scene(ask, Invitation.objects.filter(user=person).exists)


def _second_factor() -> Scene:
    person = member("support")
    Phone.objects.create(user=person)

    def ask(actor: User, _: int) -> ApprovalRequest:
        return staff.request_second_factor(person=person, actor=actor, reason="x", key=secrets.token_hex(8))

    return Scene(ask, Phone.objects.filter(user=person, confirmed=False).exists)


SCENES: dict[str, Callable[[], Scene]] = {
    "add_credit_price": _credit_price,
    "add_payout_rate": _payout_rate,
    "add_policy_version": _policy_version,
    "add_unbacked_ceiling": _unbacked_ceiling,
    "add_relayer": _relayer,
    "add_verifier": _verifier,
    "add_voucher_signer": _voucher_signer,
    "adjust_credits": _adjust,
    "assign_earning": _assign,
    "bring_back_relayer": _returning_relayer,
    "close_month": _month,
    "configure_ad_network": _network("configure_ad_network"),
    "fund_sponsor": _sponsor,
    "grant_modifier": _modifier,
    "import_earnings": _link_or_report("import_earnings"),
    "issue_network_address": _network("issue_network_address"),
    "mint_visit_link": _link_or_report("mint_visit_link"),
    "publish_drop_table": _drop_table,
    "refund_payout": _refund,
    "release_beyond_cap": _release_beyond_cap,
    "release_early": _release,
    "remove_badge": _badge_removal,
    "reset_password": _password,
    "reset_second_factor": _second_factor,
    "save_badge": _badge,
    "save_credit_pack": _credit_pack,
    "save_staff": _account,
    "save_trusted_code": _trusted_code,
    "set_expiry": _expiry,
    "set_network_secret": _network("set_network_secret"),
    "set_sponsor_budget": _budget,
}
# What carrying out a request makes, beside the row that it is about.
MADE = {
    "add_credit_price": "creditprice",
    "add_payout_rate": "payoutrate",
    "add_policy_version": "policyversion",
    "add_unbacked_ceiling": "unbackedceiling",
    "add_verifier": "verifier",
    "add_voucher_signer": "vouchersigner",
    "adjust_credits": "creditentry",
    "assign_earning": "creditentry",
    "fund_sponsor": "creditentry",
    "grant_modifier": "modifier",
    "refund_payout": "refund",
    "release_beyond_cap": "creditentry",
    "release_early": "creditentry",
    "save_staff": "user",
    "save_trusted_code": "trustedimplementation",
    "set_expiry": "expiryrule",
}
BELOW, ABOVE = 40, 41


@pytest.fixture
def limits(settings: Settings) -> Settings:
    """Alone 40 of each pool, for the whole day as well unless a test changes it; spare keys for relayers."""
    same = {"actor": BELOW, "person": BELOW, "day": BELOW, "ceiling": 1_000, "ceiling_day": 10_000}
    settings.APPROVAL_LIMITS = {"credits": same, "bonuses": same, "refunds": same}
    settings.RELAY_RELAYER_MNEMONIC = "test test test test test test test test test test test junk"
    settings.RELAY_DERIVED_RELAYERS = 9
    return settings


def table() -> dict[str, tuple[str, str, bool]]:
    """Return who asks, who decides, and whether there is something that one person does alone, as the page has it."""
    cells = [row for row in rows(DOCS / "staff.md") if len(row) == 5 and row[0].startswith("`")]
    return {code_spans(kind)[0]: (asks, decides, alone != "never") for kind, asks, decides, alone, _ in cells}


def test_the_page_for_staff_has_the_kinds_of_the_code_and_every_kind_is_tried() -> None:
    assert KINDS.keys() == SCENES.keys()
    assert table() == {
        kind.name: (
            next(role for role in ROLES if kind.asks in ROLES[role]),
            ", ".join(approval_kinds.deciders(kind) - {approval_kinds.SUPERUSER}),
            kind.pool is not None and not kind.always_waits,
        )
        for kind in KINDS.values()
    }


@pytest.mark.parametrize("kind", SCENES)
def test_only_roles_of_the_table_request_and_decide(kind: str, limits: Settings) -> None:
    asks, decides, is_alone = table()[kind]
    set_signer(None)
    scene, staff_by_role = SCENES[kind](), {role: (member(role), member(role)) for role in ASKERS}
    for role, (asker, colleague) in staff_by_role.items():
        if role not in {asks, approval_kinds.SUPERUSER}:
            with pytest.raises(PermissionDenied):
                scene.ask(asker, BELOW)
            continue
        with transaction.atomic():  # below the limit, and one more of the day
            status = scene.ask(asker, BELOW).status
            assert (status, scene.is_done()) == ("done" if is_alone else "waiting", is_alone)
            assert scene.ask(colleague, 1).status == "waiting"
            transaction.set_rollback(True)
        request = scene.ask(asker, ABOVE)
        assert (request.status, scene.is_done()) == ("waiting", False)
        with pytest.raises(OwnRequest):
            approvals.approve(request_id=request.pk, actor=asker, reason="x")
        for other, (_, second) in staff_by_role.items():
            may_decide = other in {decides, approval_kinds.SUPERUSER} - {role}
            with transaction.atomic():
                if may_decide:
                    approvals.approve(request_id=request.pk, actor=second, reason="x")
                    done = ApprovalRequest.objects.get(pk=request.pk)
                    assert (done.made_type and done.made_type.model) == MADE.get(kind)
                else:
                    with pytest.raises(AnotherRoleDecides):
                        approvals.approve(request_id=request.pk, actor=second, reason="x")
                assert scene.is_done() == may_decide, f"{role} asked, {other} decides"
                transaction.set_rollback(True)
        assert not scene.is_done()
    set_signer(None)


# --- The frauds of one person


@pytest.mark.parametrize("role", ["support", "superuser"])
def test_one_clerk_cannot_grant_110_000_credits_to_11_wallets_or_a_year_of_full_cashback(role: str) -> None:
    clerk, wallets = browser_of(member(role)), [UserFactory.create() for _ in range(11)]
    confirm(clerk, "users_user", "adjust_credits", *wallets, credits=10_000)
    assert [entry.amount for entry in CreditEntry.objects.all()] == [10_000]
    assert ApprovalRequest.objects.waiting().count() == 10
    bonus = {"modifier_type": "BONUS_CREDITS_BACK", "value": "1", "minutes": 366 * 24 * 60}
    messages = messages_of(confirm(clerk, "users_user", "grant_modifier", *wallets, **bonus))
    assert "At most 3,100 percent-days at a time, even with approval" in messages
    # A month of 3 % each is 90 percent-days of the 200 that one clerk may give in a day.
    confirm(clerk, "users_user", "grant_modifier", *wallets, **{**bonus, "value": "0.03", "minutes": 43_200})
    assert [modifier.value for modifier in Modifier.objects.all()] == [Decimal("0.03")] * 2


@pytest.mark.parametrize("role", ["finance", "superuser"])
def test_finance_alone_cannot_save_a_payout_rate_and_an_absurd_rate_is_always_refused(role: str) -> None:
    browser, before = browser_of(member(role)), list(PayoutRate.objects.values())
    begins = timezone.now() + timedelta(days=1)
    form = {
        "currency": "usd",
        "experience_per_minor_unit": 1,
        "valid_from_0": f"{begins:%Y-%m-%d}",
        "valid_from_1": "00:00",
    }
    add = "/admin/payments/payoutrate/add/"
    absurd = browser.post(add, {**form, "credits_per_major_unit": 2_147_483_647}).content.decode()
    assert "The ceiling is 100,000 credits for 1.00" in absurd
    assert 'value="2147483647"' in absurd
    assert not ApprovalRequest.objects.exists()
    confirmed(browser, add, {**form, "credits_per_major_unit": 100_000})
    for second in {role, "support"}:
        assert "is saved" not in _tried(second)
    assert list(PayoutRate.objects.values()) == before


def test_two_people_change_the_price_of_a_credit_at_once_and_a_slip_of_a_digit_is_always_refused() -> None:
    browser, first = browser_of(member("finance")), CreditPrice.objects.get()
    add, form = "/admin/relay/creditprice/add/", {"chain_id": first.chain_id}
    for factor in (Decimal(10), Decimal("0.1")):
        absurd = browser.post(add, {**form, "credit_wei": int(first.credit_wei * factor)}).content.decode()
        assert "A price changes by less than 10 times at once" in absurd
    for nonsense in ({**form, "credit_wei": "0"}, {"chain_id": "8", "credit_wei": first.credit_wei}):
        assert browser.post(add, nonsense).status_code == 200
    assert not ApprovalRequest.objects.exists()
    confirmed(browser, add, {**form, "credit_wei": first.credit_wei * 9})
    for second in ("finance", "support"):
        assert "is saved" not in _tried(second)
    assert list(CreditPrice.objects.all()) == [first]
    assert "is saved" in _tried("operations")
    price = CreditPrice.objects.get(is_first=False)
    assert (price.chain_id, price.credit_wei) == (first.chain_id, first.credit_wei * 9)
    assert price.valid_from > first.valid_from
    assert current_price() == price
    assert find_causes() == []


def test_operations_alone_cannot_set_a_networks_rate_or_secret() -> None:
    network, browser = set_up("tapjoy"), browser_of(member("operations"))
    before = list(AdNetwork.objects.values())
    page = f"/admin/earnings/adnetwork/{network.row.pk}/change/"
    form = {"is_enabled": "on", "rate": "99999", "hold_hours": "0", "per_event_cap": "9", "daily_cap": "9"}
    confirmed(browser, page, form)
    assert "is saved" not in _tried("operations")
    confirm(browser, "earnings_adnetwork", "set_secret", network.row, new_secret="mine")
    assert "accepted" not in _tried("operations")
    confirm(browser, "earnings_adnetwork", "issue_address", network.row)
    assert "accepted" not in _tried("operations")
    assert list(AdNetwork.objects.values()) == before
    assert ApprovalRequest.objects.waiting().count() == 3
    assert "accepted" in approve("finance")


def _tried(role: str) -> str:
    """Send the approval of the newest request as a member of the role, offered or not; return the message."""
    request, browser = ApprovalRequest.objects.latest("pk"), browser_of(member(role))
    response: Any = confirm(browser, "gateway_admin_approvalrequest", "approve", request, token=uuid.uuid4())
    return "" if response.status_code == 403 else messages_of(response)
