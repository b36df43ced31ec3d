"""
One person alone cannot make, price, move or hide credits beyond a ceiling: every registered way, by every role.

The ways are those of the code: kinds of requests, actions of the admin, networks, secrets of processes. What a person
did is seen in `worth`, which every kind of request that gives something changes.
"""

import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django import forms
from django.apps import apps
from django.contrib import admin
from django.db import DatabaseError, ProgrammingError, connection, models, transaction
from django.utils import timezone
from pytest_django import Settings

from checkin.models import DropItem, DropTable
from credits.models import CreditAccount, CreditEntry, ExpiryRule, UnbackedCeiling
from earnings.models import AdNetwork, HoldReason, Postback, PostbackState
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions, carry_out
from gateway.chain.signing import get_signer, set_signer
from gateway.common.errors import DomainError
from gateway.processes import withheld
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import AboveCeiling, AnotherRoleDecides, Kind, OwnRequest
from gateway.staff.models import ApprovalRequest
from payments.models import CreditPack, Payout, PayoutRate, Refund
from relay.models import Attempt, CreditPrice, Relayer
from rewards.models import Badge, Modifier
from tests.backoffice.test_approval_matrix import ABOVE, ASKERS, BELOW, KINDS, SCENES, limits
from tests.database import rewrite
from tests.earnings.ad_networks import SLUGS, set_up
from tests.factories import UserFactory, make
from tests.staff import member
from users.models import AccountDeletion, Invitation, Phone, TrustedImplementation, User

__all__ = ["limits"]
pytestmark = pytest.mark.django_db
# What these kinds do is done later, takes credits back, or moves none.
_NOT_SEEN_AT_ONCE = {
    *("add_policy_version", "add_relayer", "add_verifier", "add_voucher_signer", "close_month"),
    *("import_earnings", "mint_visit_link", "refund_payout", "set_sponsor_budget"),
}
# Offered only for rows that differ in several columns, or with rows below; they are tried too.
_NEED_MORE = {
    ("credits.CreditHold", "release_orphaned_hold"),
    ("users.User", "revoke_sessions"),
    ("users.User", "make_link"),
    ("users.User", "lift_ban"),
    ("webhooks.Endpoint", "enable"),
    ("webhooks.Endpoint", "retire_secret"),
    ("webhooks.Message", "resend"),
}
# What forms expect in these fields.
_TEXTS = {"month": "2026-01", "rates": "2026-01-31,usd,1.2345", "role": "owner"}
_PRICES = (
    Badge.objects,
    PayoutRate.objects,
    CreditPrice.objects,
    CreditPack.objects,
    ExpiryRule.objects,
    UnbackedCeiling.objects,
    DropTable.objects.filter(published_at__isnull=False),
    DropItem.objects.filter(table__published_at__isnull=False),
    AdNetwork.objects.defer("is_enabled", "current_secret", "previous_secret", "secret_changed_at"),
)
_SWITCHES = ("is_enabled", "current_secret", "previous_secret", "secret_changed_at")


def worth() -> dict[tuple[Any, ...], Any]:
    """Return balances, prices, bonuses, trust, secrets and rights of staff, each under a name."""
    return {
        **{("balance", row.pk): row.balance for row in CreditAccount.objects.all()},
        **dict(_prices()),
        **{("bonus", row.pk): 1 for row in Modifier.objects.active()},
        **{("trusted", row.pk): 1 for row in TrustedImplementation.objects.filter(is_active=True)},
        **{("relayer", row.pk): 1 for row in Relayer.objects.filter(retired_at=None)},
        **{("secret", sealed): 1 for row in AdNetwork.objects.all() for sealed in row.sealed_secrets},
        **{("phone", row.pk, row.confirmed): 1 for row in Phone.objects.all()},
        **{("invitation", row.pk, row.code_hash): 1 for row in Invitation.objects.all()},
        **dict(_rights()),
    }


def _prices() -> Iterator[tuple[tuple[Any, ...], int]]:
    for rows in _PRICES:
        for row in rows.values():
            terms = {name: value for name, value in row.items() if name not in _SWITCHES}
            yield (rows.model.__name__, str(sorted(terms.items(), key=str))), 1


def _rights() -> Iterator[tuple[tuple[Any, ...], int]]:
    for person in User.objects.filter(is_staff=True):
        groups = tuple(sorted(person.groups.values_list("name", flat=True)))
        permissions = tuple(sorted(person.user_permissions.values_list("codename", flat=True)))
        # A person who was locked out has lost the password, and gains nothing.
        password = person.password if person.has_usable_password() else ""
        for right in ("is_superuser", groups, permissions, password):
            if right and (right != "is_superuser" or person.is_superuser):
                yield ("right", person.pk, right), 1


def gains(
    before: dict[tuple[Any, ...], Any], after: dict[tuple[Any, ...], Any]
) -> dict[tuple[Any, ...], Any]:
    """Return the rows and amounts that are new or have grown; missing ones have only been taken away."""
    return {name: value for name, value in after.items() if value > before.get(name, 0)}


# --- Requests


@pytest.mark.parametrize("kind", SCENES)
def test_one_clerk_alone_gains_nothing_by_a_request_and_two_leave_a_trace(
    kind: str, limits: Settings
) -> None:
    set_signer(None)
    people = {role: (member(role), member(role)) for role in ASKERS}
    scene = SCENES[kind]()
    before = worth()
    asking = [role for role, (person, _) in people.items() if person.has_perm(KINDS[kind].asks)]
    assert approval_kinds.SUPERUSER in asking
    for role in asking:
        person, colleague = people[role]
        request = scene.ask(person, ABOVE)
        for same in (person, colleague):
            with pytest.raises((OwnRequest, AnotherRoleDecides)):
                approvals.approve(request_id=request.pk, actor=same, reason="x")
        assert gains(before, worth()) == {}
    approved = False
    for _, second in people.values():
        if not approved and approval_kinds.obstacle(request, second) is None:
            approvals.approve(request_id=request.pk, actor=second, reason="x")
            approved = True
    assert approved
    taken_away = before.keys() - worth().keys()
    is_seen = bool(gains(before, worth()) or taken_away)
    assert is_seen == (kind not in _NOT_SEEN_AT_ONCE)
    set_signer(None)


@pytest.mark.parametrize(
    "kind", [kind for kind in approval_kinds.kinds() if kind.pool], ids=lambda kind: kind.name
)
def test_even_two_do_not_pass_a_ceiling(kind: Kind, limits: Settings) -> None:
    assert kind.pool is not None
    decides = next(iter(approval_kinds.deciders(kind) - {approval_kinds.SUPERUSER}))
    asker, second, scene = member(approval_kinds.SUPERUSER), member(decides), SCENES[kind.name]()
    before = worth()
    asked = scene.ask(asker, ABOVE)
    low = {**limits.APPROVAL_LIMITS[kind.pool.name], "ceiling": BELOW}
    limits.APPROVAL_LIMITS = {**limits.APPROVAL_LIMITS, kind.pool.name: low}
    with pytest.raises(AboveCeiling), transaction.atomic():
        scene.ask(asker, ABOVE)
    with pytest.raises(AboveCeiling), transaction.atomic():
        approvals.approve(request_id=asked.pk, actor=second, reason="x")
    assert gains(before, worth()) == {}


# --- The admin


def _alone() -> list[tuple[str, ReasonedAction]]:
    """Return the actions that one person carries out; approving is the second person's part."""
    return [
        (model._meta.label, action)
        for model, page in admin.site._registry.items()
        if isinstance(page, ReasonedActions) and model is not ApprovalRequest
        for action in page.staff_actions
        if action.kind is None
    ]


def _refund() -> Refund:
    refund = make(Refund)
    rewrite(Payout.objects.filter(pk=refund.payout_id), stripe_payment_intent_id="pi_1")
    return Refund.objects.get(pk=refund.pk)


def _row_of(label: str) -> Any:
    """Return a row as services make it, where a row past the services would be a fault of the data."""
    match label:
        case "earnings.AdNetwork":
            return set_up("tapjoy").row
        case "relay.RelayTransaction":
            attempt = make(Attempt)
            Relayer.objects.filter(pk=attempt.relayer_id).update(address=get_signer().addresses()[0])
            return attempt.relay_transaction
        case "payments.Refund":
            return _refund()
        case _:
            return make(apps.get_model(label))


def _applicable(action: ReasonedAction, row: Any) -> Any:
    """Return the row in a state in which the page offers the action, if one changed column gets it there."""
    if action.subject or action.applies_to(row):
        return row
    rows = type(row)._default_manager.filter(pk=row.pk)
    for field in row._meta.concrete_fields:
        for value in _others(field):
            with suppress(DatabaseError), transaction.atomic():
                rows.update(**{field.attname: value})
                changed = rows.get()
                if action.applies_to(changed):
                    return changed
                transaction.set_rollback(True)
    return row


def _others(field: Any) -> list[Any]:
    if field.choices:
        return [code for code, _ in field.choices]
    if isinstance(field, models.BooleanField):
        return [True, False]
    if isinstance(field, models.DateTimeField):
        return [timezone.now() + timedelta(days=1), *([None] if field.null else [])]
    return []


def _inputs(action: ReasonedAction) -> dict[str, Any]:
    """Return the fields that the form of the action reads of a completed page."""
    sent: dict[str, Any] = {"reason": "because it is due", "token": str(uuid.uuid4())}
    for name, field in action.form.base_fields.items():
        if name in sent:
            continue
        if isinstance(field, forms.SplitDateTimeField):
            sent |= {f"{name}_0": "2026-01-01", f"{name}_1": "00:00"}
        elif isinstance(field, forms.IntegerField):
            sent[name] = "5"
        elif name == "profile":
            sent[name] = str(UserFactory.create().profile_address)
        else:
            sent[name] = _TEXTS.get(name, "text")
    form = action.form(sent)
    assert form.is_valid(), form.errors
    return {name: value for name, value in form.cleaned_data.items() if name not in {"reason", "token"}}


@pytest.mark.parametrize(("label", "action"), _alone(), ids=lambda part: getattr(part, "name", part))
def test_a_superuser_alone_gains_nothing_by_an_action_without_approval(
    label: str, action: ReasonedAction
) -> None:
    row = _applicable(action, apps.get_model(label)() if action.subject else _row_of(label))
    is_offered = bool(action.subject or action.applies_to(row))
    assert is_offered == ((label, action.name) not in _NEED_MORE)
    actor = member(approval_kinds.SUPERUSER)
    before = worth()
    decision = Decision(
        actor=actor,
        action=action.name,
        reason="because it is due",
        inputs=_inputs(action),
        token=uuid.uuid4(),
    )
    # Also where the page would not offer it.
    with suppress(DomainError):
        carry_out(action, row, decision)
    assert gains(before, worth()) == {}


# --- Secrets of others


@pytest.mark.parametrize("slug", SLUGS)
def test_a_stolen_network_secret_earns_nothing_for_an_absurd_reward(slug: str) -> None:
    network, user = set_up(slug), UserFactory.create()
    before = worth()
    response = network.send(network.reward(user, amount=str(10**12)))
    row = Postback.objects.get()
    assert response.status == 200
    assert (row.state, row.hold_reason, row.available_at) == (PostbackState.HELD, HoldReason.EVENT_CAP, None)
    assert gains(before, worth()) == {}
    assert not CreditEntry.objects.exists()


def test_all_network_secrets_together_earn_at_most_the_services_daily_cap(
    settings: Settings,
) -> None:
    settings.EARNINGS_DAILY_CEILING, settings.EARNINGS_NETWORK_SHARE = 500, 50
    networks = [set_up(slug, hold_hours=0, rate=1) for slug in ("tapjoy", "adgem", "bitlabs")]
    for network in networks:
        for _ in range(9):
            network.send(network.reward(UserFactory.create(), amount="50"))
    by_network = [
        sum(
            row.credits for row in Postback.objects.filter(network=network.row, state=PostbackState.AVAILABLE)
        )
        for network in networks
    ]
    assert by_network == [250, 250, 0]
    assert sum(CreditAccount.objects.values_list("balance", flat=True)) == 500
    assert Postback.objects.filter(state=PostbackState.HELD).count() == 17


def test_the_admin_has_no_secret_that_signs_tokens_draws_or_roots() -> None:
    signing = {"AUTH_SIGNING_KEYS", "AUTH_REFRESH_SECRET", "CHECKIN_SEED_SECRETS", "LEDGER_SIGNING_KEY"}
    assert signing <= set(withheld("admin"))
    assert "LEDGER_SIGNING_KEY" in withheld("web")


# --- The database


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO credits_erasedentry (entry_id, profile_hash, reason_hash) VALUES (1, '', '')",
        "DELETE FROM credits_accountsalt",
        "UPDATE credits_account SET user_id = user_id",
        "UPDATE rewards_progress SET user_id = user_id",
        "UPDATE users_accountdeletion SET status = 'erased', billing_ended_at = now(), erased_at = now()",
    ],
)
def test_the_application_cannot_swap_two_users_under_forged_erasures(statement: str) -> None:
    """The owner of the tables can; `tests/proofs/services/test_erasure.py` shows that the next audit finds it."""
    make(AccountDeletion)
    with (
        pytest.raises(ProgrammingError, match=r"permission denied|only the owner"),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
