"""What support, finance and operations do in a browser, from the question to the answer."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.utils import timezone
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer
from rest_framework.test import APIClient

from credits.models import AdjustmentDecision, AdjustmentRequest, CreditEntry
from gateway.chain.client import set_chain_client
from gateway.chain.lsp25 import RelayCall
from payments.models import StripeEvent
from payments.services import events
from payments.stripe.client import set_billing_client
from relay.models import Attempt, RelayTransaction, TrustedImplementation
from relay.services import implementations
from tests.browser.conftest import Scheme
from tests.browser.desk import Desk, Person, employ
from tests.factories import UserFactory
from tests.fakes.billing import FakeBilling
from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile, set_data, sign_relay_call
from tests.users.api.histories import earned, relayed
from tests.users.wallet import signed_in
from users.models import User

DeskIn = Callable[[Scheme], Desk]


def colleague(role: str) -> Person:
    """Employ somebody in a role."""
    person = employ(is_superuser=False)
    person.user.groups.add(Group.objects.get(name=role))
    return person


def person_path(user: User) -> str:
    return f"/admin/users/user/{user.pk}/change/"


def confirm(page: Page, button: str, *, reason: str, **answers: str) -> None:
    """Press an action's button, fill its page in and confirm."""
    page.locator("[data-staff-actions]").get_by_role("link", name=button, exact=True).click()
    for name, answer in answers.items():
        field = page.locator(f"[name={name}]")
        if field.evaluate("node => node.tagName") == "SELECT":
            field.select_option(answer)
        else:
            field.fill(answer)
    page.locator("[name=reason]").fill(reason)
    page.locator("form[method=post]").get_by_role("button", name=button, exact=True).click()
    page.wait_for_load_state("networkidle")


@pytest.fixture
def wallet_user(live_server: LiveServer) -> User:
    return UserFactory.create()


@pytest.fixture
def failed(wallet_user: User) -> RelayTransaction:
    """A relay transaction that failed, between others that did not."""
    earned(wallet_user, 20)
    relayed(wallet_user, 3)
    row = RelayTransaction.objects.order_by("pk")[1]
    RelayTransaction.objects.filter(pk=row.pk).update(
        status="Failed", end_code="call-reverted", end_detail="The target said: not enough apples."
    )
    Attempt.objects.create(
        relay_transaction=row,
        relayer=row.relayer,
        account_nonce=7,
        status=Attempt.Status.MINED,
        transaction_hash=row.transaction_hash,
        raw=b"",
        gas_limit=21_000,
        max_fee_per_gas_wei=1,
        max_priority_fee_per_gas_wei=1,
        node_message="execution reverted",
        block_number=12,
        succeeded=False,
        gas_used=20_000,
        effective_gas_price_wei=1,
        created_at=timezone.now(),
    )
    return row


def test_a_failed_call_is_found_by_its_hash_and_says_why(desk: Desk, failed: RelayTransaction) -> None:
    page = desk.log_in(colleague("support"))
    page.locator("main, #content").get_by_role("searchbox").first.fill(
        failed.transaction_hash.upper().replace("0X", "0x")
    )
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/relay/relaytransaction/{failed.pk}/change/**")
    shown = page.locator("#content")
    for words in ("Failed", "call-reverted", "not enough apples", "execution reverted"):
        expect(shown.get_by_text(words).first).to_be_visible()


def test_support_corrects_a_little_with_a_reason_that_stays(desk: Desk, wallet_user: User) -> None:
    reason = f"lost reward {secrets.token_hex(4)}"
    page = desk.log_in(colleague("support"), path=person_path(wallet_user))
    confirm(page, "Adjust credits", credits="250", reason=reason)
    expect(page.locator("#balance")).to_have_text("250")
    entry = CreditEntry.objects.get()
    assert (entry.amount, entry.reason) == (250, reason)
    desk.open("/admin/users/staffaction/")
    expect(page.get_by_text(reason).first).to_be_visible()


def test_what_is_large_waits_for_a_second_person(desk_in: DeskIn, wallet_user: User) -> None:
    large = settings.ADJUSTMENT_APPROVAL_LIMIT + 1
    first = desk_in("light")
    page = first.log_in(colleague("support"), path=person_path(wallet_user))
    confirm(page, "Adjust credits", credits=str(large), reason="a whole month was lost")
    asked = AdjustmentRequest.objects.get()
    assert asked.decision == AdjustmentDecision.PENDING
    assert not CreditEntry.objects.exists()

    second = desk_in("dark")
    path = f"/admin/credits/adjustmentrequest/{asked.pk}/change/"
    page = second.log_in(colleague("finance"), path=path)
    confirm(page, "Approve", reason="checked the invoice")
    assert CreditEntry.objects.get().amount == large
    asked.refresh_from_db()
    assert asked.decision == AdjustmentDecision.APPROVED
    assert asked.decided_by_id not in {None, asked.requested_by_id}


@pytest.fixture
def profile(live_server: LiveServer, wallet_user: User) -> Any:
    """A profile of vetted code on a chain in memory."""
    chain = FakeChain()
    set_chain_client(chain)
    kinds = TrustedImplementation.Kind
    implementations.trust(kind=kinds.PROFILE, address=chain.universal_profile, name="profile")
    implementations.trust(kind=kinds.KEY_MANAGER, address=chain.key_manager, name="key manager")
    yield chain.create_profile()
    set_chain_client(None)


class Wallet:
    """A wallet app with an access token."""

    def __init__(self, profile: Profile) -> None:
        self.client = APIClient(REMOTE_ADDR=f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1")
        self.client.credentials(HTTP_AUTHORIZATION=f"Bearer {signed_in(profile).access}")

    def modifiers(self) -> Any:
        """Return the modifiers of the dashboard."""
        return self.client.get("/api/user/dashboardInfo").json()["modifiers"]

    def execute(self, call: RelayCall) -> str:
        """Hand a call in and return the refusal's code."""
        body = {
            "keyManagerAddress": call.key_manager,
            "transaction": {
                "abi": "0x" + call.payload.hex(),
                "signature": "0x" + call.signature.hex(),
                "nonce": call.relay_nonce,
            },
        }
        return str(self.client.post("/api/relay/execute", body, format="json").json().get("code"))


def test_a_modifier_that_support_grants_shows_in_the_wallet(desk: Desk, profile: Profile) -> None:
    wallet = Wallet(profile)
    owner = User.objects.get(profile_address=profile.profile_address)
    assert wallet.modifiers() == []
    page = desk.log_in(colleague("support"), path=person_path(owner))
    confirm(
        page,
        "Grant a modifier",
        modifier_type="BONUS_SURVEYS_CREDITS",
        value="0.15",
        minutes="90",
        reason="an apology",
    )
    [shown] = wallet.modifiers()
    assert (shown["modifier_type"], shown["value"]) == ("BONUS_SURVEYS_CREDITS", 0.15)


def test_a_failed_event_is_processed_again(desk: Desk, live_server: LiveServer) -> None:
    received = timezone.now() - timedelta(hours=3)
    event = StripeEvent.objects.create(
        stripe_event_id=f"evt_{secrets.token_hex(8)}",
        type="customer.created",
        object_id=f"cus_{secrets.token_hex(8)}",
        raw_body=b"{}",
        status=StripeEvent.Status.FAILED,
        attempts=3,
        last_error="a row was locked",
        received_at=received,
        next_attempt_at=timezone.now() + timedelta(hours=6),
    )
    page = desk.log_in(colleague("support"), path=f"/admin/payments/stripeevent/{event.pk}/change/")
    expect(page.get_by_text("a row was locked").first).to_be_visible()
    confirm(page, "Process again", reason="the lock is gone")
    # A worker's next look finds it due.
    set_billing_client(FakeBilling(webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS))
    assert events.process_due(now=timezone.now()) == 1
    set_billing_client(None)
    event.refresh_from_db()
    assert event.status == StripeEvent.Status.PROCESSED


def test_operations_pause_the_relay_and_let_it_go_on(desk: Desk, profile: Profile) -> None:
    wallet = Wallet(profile)
    call = sign_relay_call(profile, set_data(), chain_id=settings.CHAIN_ID)
    desk.log_in(colleague("operations"))
    before = wallet.execute(call)
    assert before != "relay-paused"
    for button, expected in (("Pause the whole relay", "relay-paused"), ("Resume the relay", before)):
        confirm(desk.open("/admin/relay/relayswitch/"), button, reason="maintenance of the node")
        assert wallet.execute(call) == expected
