"""One box finds a person, a call, a payment or a postback by whatever names it."""

import json
import random
import secrets
import uuid

import pytest
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from earnings.models import Postback, PostbackKind, PostbackState
from gateway.admin.search import address_like
from gateway.staff import audit
from payments.models import BillingOperation, Clawback, Customer, Payout, StripeEvent, Subscription
from relay.models import Attempt, RelayTransaction
from tests.backoffice.conftest import mined
from tests.database import as_owner, rewrite
from tests.factories import UserFactory, make
from tests.portal.history_rows import relayed
from tests.staff import log_in_staff
from users.models import ProfileCard, User

pytestmark = pytest.mark.django_db


def searched(staff: Client, term: str) -> list[str]:
    """Return the pages that the search leads to."""
    response = staff.get("/admin/search/", {"q": term})
    if response.status_code == 302:
        return [response["location"]]
    return [hit.link for hit in response.context["hits"]]


def page_of(row: Model) -> str:
    return f"/admin/{row._meta.app_label}/{row._meta.model_name}/{row.pk}/change/"


def call() -> RelayTransaction:
    relayed(UserFactory.create(), 1)
    return RelayTransaction.objects.latest("pk")


def postback(**changes: object) -> Postback:
    return make(Postback, **{"kind": PostbackKind.INFO, "state": PostbackState.INFO, "user": None, **changes})


def event_about(object_id: str) -> StripeEvent:
    """Store an event about an object of Stripe's."""
    return make(StripeEvent, object_id=object_id)


@pytest.mark.usefixtures("short_sidebar")
def test_a_user_is_found_by_an_address_or_a_part_of_it(staff: Client) -> None:
    user = UserFactory.create()
    UserFactory.create_batch(20)
    address = str(user.profile_address)
    for wanted in ("{0}", "{0:.12}", "{1:.8}", "{2}", "…{2}", "{0:.6}…{2}", "{0:.6}...{2}"):
        for casing in (str, str.lower, str.upper):
            term = casing(wanted.format(address, address[2:], address[-9:])).replace("0X", "0x")
            assert searched(staff, f"  {term} ") == [page_of(user)], term
            listed = staff.get("/admin/users/user/", {"q": term}).context["cl"].result_list
            assert [row.pk for row in listed] == [user.pk], term


def test_fewer_than_four_characters_are_not_searched_as_an_address() -> None:
    for term in ("0x", "0xabc", "abc", "…abc", "ab…cd", "0x" + "a" * 41, "wallet", "cus_abcd"):
        assert address_like(term) is None, term
    assert address_like("abcd") is not None


def test_a_user_is_found_by_the_displayed_profile_name(staff: Client) -> None:
    user, digits = UserFactory.create(), secrets.token_hex(4)
    User.objects.filter(pk=user.pk).update(profile_address=f"0x{digits}{secrets.token_hex(16)}")
    for term in (f"anna#{digits}", f"@Anna Lena#{digits.upper()}", f"#{digits}"):
        assert searched(staff, term) == [page_of(user)]
        sessions = staff.get("/admin/users/signinsession/", {"q": term})
        assert not sessions.context["cl"].result_list
    assert searched(staff, f"anna#{digits[:3]}") == []


def test_users_are_found_by_the_name_of_their_profiles(staff: Client) -> None:
    word = secrets.token_hex(5)
    people = [UserFactory.create() for _ in range(3)]
    for user, name in zip(people, (f"{word} Lena", f"{word.upper()}a", f"Not {word}"), strict=True):
        ProfileCard.objects.create(user=user, name=name, refreshed_at=timezone.now())
    assert searched(staff, word) == [page_of(user) for user in people[:2]]
    assert searched(staff, f"{word} l") == [page_of(people[0])]
    assert f"{word} Lena" in staff.get(page_of(people[0])).content.decode()


def test_staff_are_found_by_their_user_names(staff: Client) -> None:
    name = f"Ada-{secrets.token_hex(4)}"
    one, other = (UserFactory.create(username=f"{name}{end}", is_staff=True) for end in ("", "-2"))
    UserFactory.create(username=f"{name}-3")
    assert searched(staff, name.lower()) == [page_of(one), page_of(other)]
    assert searched(staff, f"{name.upper()}-") == [page_of(other)]


def test_several_matching_users_are_listed(staff: Client) -> None:
    end = secrets.token_hex(5)
    people = [UserFactory.create(profile_address=f"0x{secrets.token_hex(15)}{end}") for _ in range(3)]
    assert searched(staff, end) == [page_of(user) for user in people]


def test_a_call_is_found_by_the_hash_of_any_attempt(staff: Client) -> None:
    row = call()
    first = mined(row, at=timezone.now(), gas=1, price_wei=1)
    other = "0x" + secrets.token_hex(32)
    make(
        Attempt, relay_transaction=row, account_nonce=first.account_nonce, sequence=1, transaction_hash=other
    )
    call()
    shortened = f"{other[:8]}…{other[-6:]}"
    for term in (row.transaction_hash, other, other.upper().replace("0X", "0x"), other[:10], shortened):
        listed = staff.get("/admin/relay/relaytransaction/", {"q": term}).context["cl"].result_list
        assert [result.pk for result in listed] == [row.pk]
        assert searched(staff, term) == [page_of(row)]
    for term in ("0x" + secrets.token_hex(32), f"{other[:8]}…{secrets.token_hex(6)}"):
        assert searched(staff, term) == []


def test_stripe_ids_lead_to_their_rows(staff: Client) -> None:
    user, salt = UserFactory.create(), secrets.token_hex(8)
    customer = make(Customer, user=user, stripe_customer_id=f"cus_{salt}")
    ids = {"stripe_subscription_id": f"sub_{salt}", "stripe_item_id": f"si_{salt}"}
    subscription = make(Subscription, user=user, customer=customer, **ids)
    event = event_about(f"in_{salt}")
    assert searched(staff, f"cus_{salt}") == [page_of(customer), page_of(subscription)]
    assert searched(staff, f"sub_{salt}") == [page_of(subscription)]
    assert searched(staff, f"si_{salt}") == [page_of(subscription)]
    assert searched(staff, event.stripe_event_id) == [page_of(event)]
    assert searched(staff, f"in_{salt}") == [page_of(event)]
    assert searched(staff, f"cus_{secrets.token_hex(8)}") == []


def test_an_invoice_and_its_payment_lead_to_the_payout_and_its_clawback(staff: Client) -> None:
    salt, payout, other = secrets.token_hex(8), make(Payout), make(Clawback)
    rewrite(
        Payout.objects.filter(pk=payout.pk),
        stripe_invoice_id=f"in_{salt}",
        stripe_payment_intent_id=f"pi_{salt}",
    )
    assert searched(staff, f"in_{salt}") == searched(staff, f"pi_{salt}") == [page_of(payout)]
    rewrite(Clawback.objects.filter(pk=other.pk), payout=payout)
    for name in (f"in_{salt}", f"pi_{salt}"):
        event = event_about(name)
        assert searched(staff, name) == [page_of(payout), page_of(other), page_of(event)]


@pytest.mark.parametrize("kind", ["seti", "re", "pyr", "du", "dp", "ch", "py"])
def test_an_object_without_a_row_leads_to_its_webhook_events(staff: Client, kind: str) -> None:
    name = f"{kind}_{secrets.token_hex(8)}"
    event_about(f"{name}0")
    assert searched(staff, name) == []
    first, second = event_about(name), event_about(name)
    assert searched(staff, f" {name} ") == [page_of(first), page_of(second)]


def test_an_invoice_is_found_by_the_number_that_its_payer_has(staff: Client) -> None:
    payout = make(Payout)
    make(Payout)
    number = f"{secrets.token_hex(4).upper()}-0007"
    rewrite(Payout.objects.filter(pk=payout.pk), invoice_number=number)

    assert searched(staff, number.lower()) == [page_of(payout)]
    listed = staff.get("/admin/payments/payout/", {"q": number}).context["cl"].result_list
    assert [result.pk for result in listed] == [payout.pk]


def test_an_order_at_stripe_is_found_by_its_id(staff: Client) -> None:
    order = make(BillingOperation)
    make(BillingOperation)
    assert searched(staff, str(order.pk)) == [page_of(order)]
    assert searched(staff, str(uuid.uuid4())) == []


def test_a_request_leads_to_all_that_it_did(staff: Client) -> None:
    name, row = str(uuid.uuid4()), call()
    RelayTransaction.objects.filter(pk=row.pk).update(request_id=name)
    assert searched(staff, name) == [page_of(row)]
    received = postback(request_id=name)
    done = LogEntry.objects.create(
        user_id=User.objects.get(is_staff=True).pk,
        object_repr="x",
        action_flag=2,
        change_message=json.dumps([{**audit.details(action="tried"), "requestId": name}]),
    )
    assert searched(staff, name) == [
        page_of(row),
        page_of(received),
        f"/admin/gateway_admin/staffaction/{done.pk}/change/",
    ]
    assert searched(staff, "") == []


def test_an_event_of_a_network_leads_to_its_postbacks(staff: Client) -> None:
    credit = postback()
    assert searched(staff, credit.external_id) == [page_of(credit)]
    reversal = postback(original_id=credit.external_id)
    assert searched(staff, credit.external_id) == [page_of(credit), page_of(reversal)]


def test_a_search_without_a_match_lists_the_searchable_kinds(staff: Client) -> None:
    term = f"<b>{secrets.token_hex(3)}"
    page = staff.get("/admin/search/", {"q": term}).content.decode()
    assert "No results for" in page
    assert term not in page
    assert "A Stripe id: cus_" in page


def test_only_kinds_that_may_be_viewed_are_found(client: Client) -> None:
    log_in_staff(client, "view_relaytransaction")
    row = call()
    mined(row, at=timezone.now(), gas=1, price_wei=1)
    assert searched(client, str(row.profile_address)) == []
    assert searched(client, row.transaction_hash) == [page_of(row)]


def test_the_search_page_requires_a_login() -> None:
    UserFactory.create()
    response = Client().get("/admin/search/", {"q": "abcd"})
    assert (response.status_code, response["location"].split("?")[0]) == (302, "/admin/login/")


def test_the_box_is_on_every_page_and_the_lists_are_still_found(staff: Client) -> None:
    assert 'action="/admin/search/"' in staff.get("/admin/credits/creditentry/").content.decode()
    for _ in range(2):
        assert "/admin/relay/relayer/" in staff.get("/admin/search/", {"s": "relayer"}).content.decode()


def test_staff_and_a_part_of_an_address_are_found_by_an_index(db: None) -> None:
    people = [
        User(username=secrets.token_hex(8), profile_address=f"0x{secrets.token_hex(20)}")
        for _ in range(6_000)
    ]
    User.objects.bulk_create(people)
    as_owner("ANALYZE users_user")
    assert "users_user_staff" in User.objects.filter(is_staff=True, username__istartswith="ada").explain()
    address = str(random.choice(people).profile_address)
    for term, indexes in (
        (address[:12], {"users_user_address_begin"}),
        (f"…{address[-9:]}", {"users_user_address_end"}),
        (address[-9:], {"users_user_address_begin", "users_user_address_end"}),
    ):
        part = address_like(term)
        assert part is not None
        plan = User.objects.filter(part).explain()
        assert "Seq Scan" not in plan
        assert {
            name for name in ("users_user_address_begin", "users_user_address_end") if name in plan
        } == indexes


def test_lists_of_users_rows_are_filtered_by_a_part_of_an_address(staff: Client) -> None:
    relayed(UserFactory.create(), 2)
    row = call()
    address = str(row.profile_address)
    for term in (address.lower(), address[:14], f"…{address[-10:]}"):
        listed = staff.get("/admin/relay/relaytransaction/", {"q": term})
        assert [row.pk for row in listed.context["cl"].result_list] == [row.pk]
        entries = staff.get("/admin/credits/creditentry/", {"q": term}).context["cl"].result_list
        assert [entry.account.user_id for entry in entries] == [row.user_id]
    key = entries[0].key
    assert [
        row.key for row in staff.get("/admin/credits/creditentry/", {"q": key}).context["cl"].result_list
    ] == [key]
    assert not staff.get("/admin/credits/creditentry/", {"q": "nobody"}).context["cl"].result_list
