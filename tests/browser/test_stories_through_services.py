"""Stories that are lived from the start: a wallet calls, a chain reverts, the relay pauses, two press at once."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.conf import settings
from django.utils import timezone
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from credits.models import CreditEntry, EntrySource
from credits.queries import balance_of
from credits.services import entries
from gateway.admin.columns import word_of
from gateway.chain.client import set_chain_client
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signing import get_signer
from gateway.staff import approvals
from gateway.staff.models import ApprovalRequest
from relay.models import RelayTransaction
from relay.services.fleet import relayers
from tests.browser.admin_client import (
    AdminClient,
    begin,
    colleague,
    confirm,
    follow,
    look_up,
    person_path,
)
from tests.factories import UserFactory
from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile, set_data, sign_relay_call, transfer
from tests.relay.api.conftest import ApiResponse, Wallet, execute_body, network_address
from tests.relay.workers import broadcast_all, track
from tests.users.auth_client import signed_in
from tests.users.trusted import trust_code
from users.models import User

_CREDITS = 10_000


@dataclass
class Relaying:
    """A wallet with credits, before a relay whose relayers have LYX, over a chain in memory."""

    chain: FakeChain
    profile: Profile
    wallet: Wallet
    user: User

    def call(self, payload: bytes) -> RelayCall:
        """Return the wallet's next call, signed."""
        return sign_relay_call(self.profile, payload, chain_id=settings.CHAIN_ID)

    def execute(self, call: RelayCall) -> ApiResponse:
        """Hand a call in."""
        return self.wallet.post("/api/relay/execute", execute_body(call))

    def settle(self) -> None:
        """Let the workers send the one call that waits, and the chain confirm it."""
        assert broadcast_all() == 1
        self.chain.mine(settings.CONFIRMATIONS)
        assert track() == 1


@pytest.fixture
def relaying(live_server: LiveServer) -> Iterator[Relaying]:
    """The relay at work, and a signed-in user."""
    chain = FakeChain(chain_id=settings.CHAIN_ID)
    set_chain_client(chain)
    trust_code(profile=chain.universal_profile, key_manager=chain.key_manager)
    chain.fund(100 * 10**18, *get_signer().addresses())
    relayers.sync(now=timezone.now())
    profile = chain.create_profile()
    wallet = Wallet(signed_in(profile).access, network_address())
    user = User.objects.get(profile_address=profile.profile_address)
    entries.grant(user=user, credits=_CREDITS, source=EntrySource.VIDEO_ADS, key=secrets.token_hex(8))
    yield Relaying(chain, profile, wallet, user)
    set_chain_client(None)


def test_why_a_call_reverted_is_found_by_its_hash(admin: AdminClient, relaying: Relaying) -> None:
    flaky = relaying.chain.deploy_flaky()
    response = relaying.execute(relaying.call(transfer(flaky.address, 1, secrets.token_bytes(4))))
    transaction_hash = response.body["transactionHash"]
    flaky.flip()
    relaying.settle()
    row = RelayTransaction.objects.get()
    assert row.status == RelayTransaction.Status.FAILED

    page = admin.enter(colleague("support"))
    # As mail programs and people write it.
    look_up(page, f"0x{transaction_hash[2:].upper()}")
    page.wait_for_url(f"**/relay/relaytransaction/{row.pk}/change/**")

    shown = page.locator("#content")
    assert row.failure_code
    outcome, request_id = word_of(row.failure_code), response.headers["X-Request-ID"]
    for words in (outcome, row.failure_detail, request_id, transaction_hash):
        assert words
        expect(shown.get_by_text(words).locator("visible=true").first).to_be_visible()
    admin.open(person_path(relaying.user))
    calls = page.get_by_label("Relay transactions", exact=True)
    expect(calls.get_by_text(row.failure_detail)).to_be_visible()
    expect(calls.get_by_text("Call, mined")).to_be_visible()
    expect(page.locator("#available")).to_have_text(f"{_CREDITS - row.real_cost:,}")


def test_a_paused_relay_refuses_and_a_resumed_one_accepts_the_same_call(
    admin: AdminClient, relaying: Relaying
) -> None:
    call, reason = relaying.call(set_data()), f"the node is replaced {secrets.token_hex(4)}"
    page = admin.enter(colleague("operations"), "/admin/gateway_admin/pause/")
    confirm(page, "Pause the whole relay", reason=reason)
    refused = relaying.execute(call)
    assert (refused.status, refused.body["code"]) == (503, "relay-paused")
    assert not RelayTransaction.objects.exists()
    assert balance_of(relaying.user).held == 0
    # The first thing that the next one sees.
    expect(admin.open("/admin/").get_by_label("Needs attention")).to_contain_text(reason)

    confirm(
        admin.open("/admin/gateway_admin/pause/"), "Resume the whole relay", reason="the new node is in step"
    )
    accepted = relaying.execute(call)
    assert (accepted.status, set(accepted.body)) == (200, {"transactionHash"})
    assert RelayTransaction.objects.get().status == RelayTransaction.Status.PENDING
    relaying.settle()
    assert RelayTransaction.objects.get().status == RelayTransaction.Status.SUCCESS


def test_a_large_request_waits_for_two_approvers_and_the_second_sees_its_result(
    admin: AdminClient, live_server: LiveServer
) -> None:
    large = settings.APPROVAL_LIMITS["credits"]["actor"] + secrets.randbelow(1_000) + 1
    user, finance = UserFactory.create(), colleague("finance").user
    page = admin.enter(colleague("support"), person_path(user))
    confirm(page, "Adjust credits", credits=str(large), reason="an offer was lost")
    expect(page.get_by_text("waits for a second person").first).to_be_visible()
    request = ApprovalRequest.objects.get()
    assert (request.status, CreditEntry.objects.exists()) == ("waiting", False)

    page = admin.enter(colleague("finance"), f"/admin/gateway_admin/approvalrequest/{request.pk}/change/")
    begin(page, "Approve", reason="the network confirms it")
    approvals.approve(request_id=request.pk, actor=finance, reason="faster")
    follow(page.locator("form[method=post]").get_by_role("button", name="Approve", exact=True))

    assert [entry.amount for entry in CreditEntry.objects.all()] == [large]
    expect(page.get_by_text("does not apply").first).to_be_visible()
    request.refresh_from_db()
    assert (request.status, request.decided_by_id) == ("done", finance.pk)
