"""What operations do about the relay: with a reason, by role, once; refused where the service refuses."""

import secrets
from collections.abc import Callable

import pytest
from django.urls import reverse
from django.utils import timezone

from credits.models import HoldStatus
from credits.queries import balance_of
from relay import queries
from relay.models import Relayer, RelaySwitch, RelayTransaction
from tests.relay.chain import Chain, MeddlingClient
from tests.relay.workers import broadcast_all
from tests.staff import address_of, browser_of, confirm, everything, member, messages_of, prove

pytestmark = pytest.mark.django_db
Accept = Callable[..., RelayTransaction]
OPERATIONS = {"operations"}


def test_a_relayer_is_paused_and_resumed_by_operations(relayers: list[Relayer]) -> None:
    for action, is_active in (("pause", False), ("resume", True)):
        prove("relay_relayer", action, relayers[0], roles=OPERATIONS)
        assert Relayer.objects.get(pk=relayers[0].pk).is_active == is_active


def test_the_whole_relay_is_paused_and_resumed(accept: Accept) -> None:
    prove("relay_relayswitch", "pause", roles=OPERATIONS)
    assert queries.is_paused()
    prove("relay_relayswitch", "resume", roles=OPERATIONS)
    assert not queries.is_paused()
    assert list(RelaySwitch.objects.order_by("pk").values_list("is_open", flat=True)) == [False, True]
    assert accept().status == "Pending"


def test_the_relays_page_offers_what_is_possible_now(db: None) -> None:
    client, page = browser_of(member("operations")), reverse("admin:relay_relayswitch_changelist")
    for action, other in (("pause", "resume"), ("resume", "pause")):
        shown = client.get(page).content.decode()
        assert reverse("admin:relay_relayswitch_do", args=[action]) in shown
        assert reverse("admin:relay_relayswitch_do", args=[other]) not in shown
        confirm(client, "relay_relayswitch", action)
    assert "data-staff-actions" not in browser_of(member("support")).get(page).content.decode()


def test_to_pause_what_is_paused_changes_nothing(db: None) -> None:
    client = browser_of(member("operations"))
    confirm(client, "relay_relayswitch", "pause")
    before = everything()
    assert "does not apply" in messages_of(confirm(client, "relay_relayswitch", "pause"))
    assert everything() == before


def test_the_pages_of_relayers_and_calls_offer_their_actions(accept: Accept) -> None:
    row = accept()
    for role, offered in (("operations", True), ("support", False)):
        page = reverse("admin:relay_relaytransaction_change", args=[row.pk])
        shown = browser_of(member(role)).get(page).content.decode()
        for action in ("broadcast_again", "cancel_unsent"):
            assert (address_of("relay_relaytransaction", action, row) in shown) == offered


def test_what_is_silent_is_broadcast_again(accept: Accept, node: MeddlingClient, chain: Chain) -> None:
    row = accept()
    broadcast_all()
    chain.drop_pool()
    sent = len(node.sent)
    told = prove("relay_relaytransaction", "broadcast_again", row, roles=OPERATIONS)
    assert "The node took it." in told
    assert bytes(row.attempts.get().raw) == node.sent[-1]
    assert len(node.sent) == sent + 1


def test_what_waits_for_its_first_broadcast_leaves_in_the_order_of_account_nonces(
    accept: Accept, node: MeddlingClient
) -> None:
    Relayer.objects.exclude(pk=Relayer.objects.order_by("pk")[0].pk).update(is_active=False)
    first, second = accept(channel=secrets.randbits(120)), accept(channel=secrets.randbits(120))
    confirm(browser_of(member("operations")), "relay_relaytransaction", "broadcast_again", second)
    assert node.sent == [bytes(row.attempts.get().raw) for row in (first, second)]


def test_a_settled_call_is_not_broadcast_again(
    accept: Accept, node: MeddlingClient, settle: Callable[[], int]
) -> None:
    row = accept()
    settle()
    before, sent = everything(), list(node.sent)
    answer = confirm(browser_of(member("operations")), "relay_relaytransaction", "broadcast_again", row)
    assert "does not apply" in messages_of(answer)
    assert (everything(), node.sent) == (before, sent)


def test_a_call_that_was_never_sent_is_cancelled_and_costs_its_user_nothing(
    accept: Accept, node: MeddlingClient, settle: Callable[[], int]
) -> None:
    row = accept()
    before = balance_of(row.user)
    told = prove("relay_relaytransaction", "cancel_unsent", row, roles=OPERATIONS)
    assert "once that is confirmed, the hold is released" in told
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


def test_what_was_sent_since_the_page_was_shown_is_not_cancelled(accept: Accept, chain: Chain) -> None:
    row = accept()
    client = browser_of(member("operations"))
    assert client.get(address_of("relay_relaytransaction", "cancel_unsent", row)).status_code == 200
    broadcast_all()
    before = everything()
    answer = confirm(client, "relay_relaytransaction", "cancel_unsent", row)
    assert "does not apply" in messages_of(answer)
    assert everything() == before


def test_a_hold_is_released_only_when_it_is_proven_dead(accept: Accept) -> None:
    row = accept()
    client, before = browser_of(member("operations")), everything()
    assert "does not apply" in messages_of(
        confirm(client, "credits_credithold", "release_orphaned_hold", row.hold)
    )
    assert everything() == before

    # Meddled with: the call has ended, and nothing has closed its hold.
    RelayTransaction.objects.filter(pk=row.pk).update(status="Cancelled", settled_at=timezone.now())
    told = prove("credits_credithold", "release_orphaned_hold", row.hold, roles=OPERATIONS)
    row.hold.refresh_from_db()
    assert f"{row.hold.amount} credits are released" in told
    assert (row.hold.status, balance_of(row.user).held) == (HoldStatus.RELEASED, 0)
