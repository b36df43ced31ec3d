"""The relay in the admin: lists and pages, and the actions of operations."""

import html
import json
import re
import secrets
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from credits.models import EntrySource, HoldStatus
from credits.queries import balance_of
from credits.services import entries
from gateway.admin.actions import Decision, carry_out
from gateway.chain.config import get_chain
from gateway.chain.fees import Fees
from gateway.staff.approval_kinds import RequestConflict
from gateway.staff.models import ApprovalRequest, Pause
from gateway.staff.pauses import is_paused
from relay.admin import calls
from relay.models import FinalBlock, Loss, Relayer, RelayTransaction
from relay.payloads import actions_of
from relay.queries.calls import RELAY
from relay.services.fleet import losses
from relay.services.sending import replacement
from tests.factories import AttemptFactory, UserFactory
from tests.portal.history_rows import relayed
from tests.relay.chain import GWEI, Chain, FaultyClient
from tests.relay.conftest import Accept
from tests.relay.signing import window
from tests.relay.workers import broadcast_all, later
from tests.staff import (
    address_of,
    approve,
    browser_of,
    confirm,
    everything,
    log_in_staff,
    member,
    messages_of,
    prove,
)
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(client: Client) -> Client:
    """Return a browser of a superuser who has shown a second factor."""
    log_in_staff(client)
    return client


def results(staff: Client, model: str, **query: str) -> list[Any]:
    """Return the rows that a list page shows."""
    page = staff.get(reverse(f"admin:relay_{model}_changelist"), query)
    assert page.status_code == 200
    return list(page.context["cl"].result_list)


def test_a_transaction_is_found_by_any_hash_and_by_address(staff: Client, accept: Accept) -> None:
    row, other = accept(), accept(channel=secrets.randbits(120))
    broadcast_all()
    replacement.replace(
        attempt_id=row.attempts.get().pk, fees=Fees(9 * GWEI, 2 * GWEI, 9 * GWEI), now=later(0)
    )
    for attempt in row.attempts.all():
        assert results(staff, "relaytransaction", q=attempt.transaction_hash) == [row]
        assert results(staff, "attempt", q=attempt.transaction_hash) == [attempt]
    for address in (row.profile_address, row.profile_address.lower()):
        assert results(staff, "relaytransaction", q=address) == [other, row]
    page = staff.get(reverse("admin:relay_relaytransaction_changelist")).content.decode()
    assert page.count(reverse("admin:users_user_change", args=[row.user_id])) == 2
    assert results(staff, "relaytransaction", q="no such thing") == []


def test_a_search_uses_indexed_columns(staff: Client, accept: Accept) -> None:
    row = accept()
    for model, term in (
        ("relaytransaction", row.transaction_hash.upper().replace("0X", "0x")),
        ("relaytransaction", row.profile_address.lower()),
        ("attempt", row.transaction_hash.upper()),
    ):
        with CaptureQueriesContext(connection) as queries:
            assert len(results(staff, model, q=term)) == 1
        assert not [query for query in queries if "UPPER(" in query["sql"]]


OPERATIONS = {"operations"}


def test_a_relayer_is_paused_and_resumed_by_operations(relayers: list[Relayer]) -> None:
    for action, is_active in (("pause", False), ("resume", True)):
        prove("relay_relayer", action, relayers[0], roles=OPERATIONS)
        assert Relayer.objects.get(pk=relayers[0].pk).is_active == is_active


def test_the_whole_relay_is_paused_and_resumed(accept: Accept) -> None:
    prove("gateway_admin_pause", "pause_relay", roles=OPERATIONS)
    assert is_paused(RELAY)
    prove("gateway_admin_pause", "resume_relay", roles=OPERATIONS)
    assert not is_paused(RELAY)
    assert list(Pause.objects.order_by("pk").values_list("is_paused", flat=True)) == [True, False]
    assert accept().status == "Pending"


def test_the_relays_page_offers_only_the_currently_possible_actions(db: None) -> None:
    client, page = browser_of(member("operations")), reverse("admin:gateway_admin_pause_changelist")
    for action, other in (("pause_relay", "resume_relay"), ("resume_relay", "pause_relay")):
        shown = client.get(page).content.decode()
        assert reverse("admin:gateway_admin_pause_do", args=[action]) in shown
        assert reverse("admin:gateway_admin_pause_do", args=[other]) not in shown
        confirm(client, "gateway_admin_pause", action)
    assert "data-staff-actions" not in browser_of(member("support")).get(page).content.decode()


def test_pausing_a_paused_relay_changes_nothing(db: None) -> None:
    client = browser_of(member("operations"))
    confirm(client, "gateway_admin_pause", "pause_relay")
    before = everything()
    assert "does not apply" in messages_of(confirm(client, "gateway_admin_pause", "pause_relay"))
    assert everything() == before


def test_the_pages_of_relayers_and_calls_offer_their_actions(accept: Accept) -> None:
    row = accept()
    for role, offered in (("operations", True), ("support", False)):
        page = reverse("admin:relay_relaytransaction_change", args=[row.pk])
        shown = browser_of(member(role)).get(page).content.decode()
        for action in ("broadcast_again", "cancel_unsent"):
            assert (address_of("relay_relaytransaction", action, row) in shown) == offered


def test_an_unmined_call_is_broadcast_again(accept: Accept, node: FaultyClient, chain: Chain) -> None:
    row = accept()
    broadcast_all()
    chain.drop_pool()
    sent = len(node.sent)
    message = prove("relay_relaytransaction", "broadcast_again", row, roles=OPERATIONS)
    assert "The node accepted it." in message
    assert bytes(row.attempts.get().raw) == node.sent[-1]
    assert len(node.sent) == sent + 1


def test_pending_first_broadcasts_are_sent_in_order_of_account_nonces(
    accept: Accept, node: FaultyClient
) -> None:
    Relayer.objects.exclude(pk=Relayer.objects.order_by("pk")[0].pk).update(is_active=False)
    first, second = accept(channel=secrets.randbits(120)), accept(channel=secrets.randbits(120))
    confirm(browser_of(member("operations")), "relay_relaytransaction", "broadcast_again", second)
    assert node.sent == [bytes(row.attempts.get().raw) for row in (first, second)]


def test_a_settled_call_is_not_broadcast_again(
    accept: Accept, node: FaultyClient, settle: Callable[[], int]
) -> None:
    row = accept()
    settle()
    before, sent = everything(), list(node.sent)
    response = confirm(browser_of(member("operations")), "relay_relaytransaction", "broadcast_again", row)
    assert "does not apply" in messages_of(response)
    assert (everything(), node.sent) == (before, sent)


def test_a_call_that_was_never_sent_is_cancelled_and_costs_its_user_nothing(
    accept: Accept, node: FaultyClient, settle: Callable[[], int]
) -> None:
    row = accept()
    before = balance_of(row.user)
    message = prove("relay_relaytransaction", "cancel_unsent", row, roles=OPERATIONS)
    assert "Once it is confirmed, the hold is released" in message
    # Until then the hold stays: an account nonce is not given back.
    assert balance_of(row.user) == before
    assert settle() == 1
    row.refresh_from_db()
    assert (row.status, row.failure_code, row.hold.status) == (
        "Cancelled",
        "cancelled-by-staff",
        HoldStatus.RELEASED,
    )
    call, cancellation = row.attempts.order_by("sequence")
    assert node.sent == [bytes(cancellation.raw)]
    assert (call.status, cancellation.account_nonce) == ("withdrawn", call.account_nonce)
    assert balance_of(row.user).held == 0


def test_a_call_that_was_sent_since_the_page_was_shown_is_not_cancelled(accept: Accept, chain: Chain) -> None:
    row = accept()
    client = browser_of(member("operations"))
    assert client.get(address_of("relay_relaytransaction", "cancel_unsent", row)).status_code == 200
    broadcast_all()
    before = everything()
    response = confirm(client, "relay_relaytransaction", "cancel_unsent", row)
    assert "does not apply" in messages_of(response)
    assert everything() == before


def test_only_an_orphaned_hold_is_released(accept: Accept) -> None:
    row = accept()
    client, before = browser_of(member("operations")), everything()
    assert "does not apply" in messages_of(
        confirm(client, "credits_credithold", "release_orphaned_hold", row.hold)
    )
    assert everything() == before

    # Meddled with: the call has ended, and nothing has closed its hold.
    RelayTransaction.objects.filter(pk=row.pk).update(status="Cancelled", settled_at=timezone.now())
    message = prove("credits_credithold", "release_orphaned_hold", row.hold, roles=OPERATIONS)
    row.hold.refresh_from_db()
    assert f"{row.hold.amount} credits are released" in message
    assert (row.hold.status, balance_of(row.user).held) == (HoldStatus.RELEASED, 0)


def test_the_losses_page_shows_the_budget_and_its_users(
    staff: Client, accept: Accept, chain: Chain, settings: Settings, user: User
) -> None:
    settings.RELAY_LOSS_PER_HOUR_WEI = 10**15
    accept(validity=window(0, int(timezone.now().timestamp()) + 100))
    broadcast_all(now=later(101))
    usage = losses.usage(now=timezone.now())
    page = staff.get(reverse("admin:relay_loss_changelist"))
    text = page.content.decode()
    assert page.context["budget"]["reserved"] == get_chain().amount(usage.reserved_wei, places=6)
    assert page.context["budget"]["percent"] == round(100 * usage.reserved_wei / 10**15)
    assert str(user.profile_address) in text
    assert "all calls" in text
    assert results(staff, "loss", q=str(user.profile_address)) == list(Loss.objects.all())
    Loss.objects.update(lost_wei=10**15, settled_at=timezone.now())
    assert "only self-transfers" in staff.get(reverse("admin:relay_loss_changelist")).content.decode()


def test_the_credits_of_a_call_are_given_back_once_with_the_reason_filled_in(db: None) -> None:
    user = UserFactory.create()
    entries.grant(user=user, credits=50, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    relayed(user, 2)
    row, other = RelayTransaction.objects.order_by("pk")
    before = balance_of(user).balance
    page = browser_of(member("support")).get(address_of("relay_relaytransaction", "give_back", row))
    assert row.transaction_hash[:10] in page.context["form"]["reason"].value()
    shown = browser_of(member("support")).get(reverse("admin:relay_relaytransaction_change", args=[row.pk]))
    assert address_of("relay_relaytransaction", "give_back", row) in shown.content.decode()

    message = prove("relay_relaytransaction", "give_back", row, roles={"support"})

    assert "+1 credits were posted" in message
    assert balance_of(user).balance == before + 1
    again = confirm(browser_of(member("support")), "relay_relaytransaction", "give_back", row)
    assert "does not apply" in messages_of(again)
    assert balance_of(user).balance == before + 1
    confirm(browser_of(member("support")), "relay_relaytransaction", "give_back", other)
    assert balance_of(user).balance == before + 2


def test_credits_that_a_reorganisation_may_give_back_are_not_given_back_by_staff(db: None) -> None:
    user = UserFactory.create()
    entries.grant(user=user, credits=50, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    relayed(user, 1)
    row, before = RelayTransaction.objects.get(), balance_of(user).balance
    carrier = AttemptFactory.create(relay_transaction=row, is_mined=True, block_number=10)
    final = FinalBlock.objects.create(chain_id=row.chain_id, number=9, block_hash=carrier.block_hash)
    response = confirm(browser_of(member("support")), "relay_relaytransaction", "give_back", row)
    assert "does not apply" in messages_of(response)
    assert (balance_of(user).balance, ApprovalRequest.objects.count()) == (before, 0)
    final.number = 10
    final.save()
    confirm(browser_of(member("support")), "relay_relaytransaction", "give_back", row)
    assert balance_of(user).balance == before + 1


def test_cashback_of_a_call_is_not_given_back_again(db: None) -> None:
    user = UserFactory.create()
    entries.grant(user=user, credits=50, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    relayed(user, 1)
    row = RelayTransaction.objects.get()
    assert calls.GIVE_BACK.applies_to(row)
    key = f"back:{row.hold.entry.key}"  # type: ignore[union-attr]
    entries.grant(user=user, credits=1, source=EntrySource.CREDITS_BACK, key=key)
    assert not calls.GIVE_BACK.applies_to(row)


def test_two_clerks_who_give_back_the_same_call_at_once_give_it_back_once(db: None) -> None:
    user = UserFactory.create()
    entries.grant(user=user, credits=50, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    relayed(user, 1)
    row = RelayTransaction.objects.get()
    before, refused = balance_of(user).balance, []
    for clerk in (member("support"), member("support")):
        decision = Decision(
            actor=clerk, action="give_back", reason="a lost call", inputs={}, token=uuid.uuid4()
        )
        try:
            # Past the check of the page, as the slower of the two is.
            carry_out(calls.GIVE_BACK, row, decision)
        except RequestConflict as refusal:
            refused.append(refusal.code)
    assert (balance_of(user).balance, len(refused)) == (before + 1, 1)


@pytest.mark.parametrize("decided", ["approve", "reject"])
def test_a_large_call_is_given_back_when_a_second_person_agrees(
    db: None, settings: Settings, decided: str
) -> None:
    limits = settings.APPROVAL_LIMITS["credits"]
    settings.APPROVAL_LIMITS = {**settings.APPROVAL_LIMITS, "credits": {**limits, "actor": 0}}
    user = UserFactory.create()
    entries.grant(user=user, credits=50, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    relayed(user, 1)
    row, before = RelayTransaction.objects.get(), balance_of(user).balance
    asked = confirm(browser_of(member("support")), "relay_relaytransaction", "give_back", row)
    assert "waits for a second person" in messages_of(asked)
    assert not calls.GIVE_BACK.applies_to(row)
    approve("finance", action=decided)
    assert balance_of(user).balance == before + (decided == "approve")
    # Who was refused may ask again.
    assert calls.GIVE_BACK.applies_to(row) == (decided == "reject")


def test_the_page_of_a_call_says_what_it_did_and_what_was_captured(staff: Client, accept: Accept) -> None:
    row = accept()
    page = staff.get(reverse("admin:relay_relaytransaction_change", args=[row.pk])).content.decode()
    told = json.loads(html.unescape(re.search(r'data-deeds="([^"]*)"', page)[1]))  # type: ignore[index]
    assert told["currency"] == "LYX"
    assert [action["action"] for action in told["actions"]] == [
        action.action for action in actions_of(bytes(row.payload))
    ]
    assert "portal/staff-deeds.js" in page
    assert ">Captured<" in re.sub(r"\s+", "", page)
