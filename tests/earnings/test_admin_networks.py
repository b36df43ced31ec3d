"""Staff set networks up and read their postbacks; no page shows a secret."""

import re
import secrets
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from earnings.models import AdNetwork, Postback
from earnings.services import networks
from gateway.staff.audit import details_of
from gateway.staff.models import ApprovalRequest
from tests.earnings.ad_networks import SENDER, issue_path_token, set_up
from tests.factories import UserFactory
from tests.staff import approve, browser_of, confirm, saved
from users.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("short_sidebar")]


def _browser(**who: Any) -> tuple[Client, User]:
    person = UserFactory.create(profile_address=None, is_staff=True, **who)
    return browser_of(person), person


@pytest.fixture
def staff() -> Client:
    """Return a browser of a superuser who has shown a second factor."""
    return _browser(is_superuser=True)[0]


def _form(**values: Any) -> dict[str, Any]:
    return {
        "rate": "1",
        "hold_hours": "0",
        "allowed_addresses": "",
        "per_event_cap": "25000",
        "daily_cap": "50000",
        **values,
    }


def _page(staff: Client, name: str, *ids: Any) -> Any:
    return staff.get(reverse(f"admin:earnings_{name}", args=ids)).content.decode()


@pytest.mark.parametrize(
    "address",
    [
        "http://offers.example/{reference}",
        "https://offers.example/",
        "https://x/{reference}{reference}",
        "{reference}",
    ],
)
def test_an_address_of_offers_that_would_not_work_is_refused(staff: Client, address: str) -> None:
    values = _form(slug="bitlabs", offers_url=address)
    response = staff.post(reverse("admin:earnings_adnetwork_add"), {**values, "reason": "offers"})
    assert "has {reference} once" in response.content.decode()
    assert not AdNetwork.objects.exists()
    assert not ApprovalRequest.objects.exists()


def test_an_added_network_with_its_secret_accepts_postbacks(staff: Client) -> None:
    values = _form(slug="tapjoy", is_enabled="on", rate="2.5", daily_cap="50")

    saved(staff, reverse("admin:earnings_adnetwork_add"), values, role="finance")

    row = AdNetwork.objects.get()
    confirm(staff, "earnings_adnetwork", "set_secret", row, new_secret="  the secret ")
    assert networks.live_secrets(row) == []
    approve("finance")
    row.refresh_from_db()
    assert (row.slug, row.is_enabled, row.daily_cap, row.is_weak) == ("tapjoy", True, 50, False)
    assert row.rate == Decimal("2.5")
    assert networks.live_secrets(row) == ["the secret"]
    assert row.secret_changed_at is not None


def test_a_changed_secret_keeps_the_one_before_it_until_it_is_retired(staff: Client) -> None:
    network = set_up("tapjoy")
    confirm(staff, "earnings_adnetwork", "set_secret", network.row, new_secret="newer")
    network.row.refresh_from_db()
    assert networks.live_secrets(network.row) == [network.secret]

    approve("finance")
    network.row.refresh_from_db()
    assert networks.live_secrets(network.row) == ["newer", network.secret]

    confirm(staff, "earnings_adnetwork", "retire_secret", network.row)
    network.row.refresh_from_db()
    assert networks.live_secrets(network.row) == ["newer"]


@pytest.mark.parametrize(
    ("slug", "proof"),
    [
        ("bitlabs", "https://developer.bitlabs.ai/docs/securing-callbacks-through-hashing"),
        ("levelplay", "Unverified"),
        ("visit-link", "Not needed"),
    ],
)
def test_a_networks_page_shows_how_its_adapter_was_verified(staff: Client, slug: str, proof: str) -> None:
    assert proof in _page(staff, "adnetwork_change", set_up(slug).row.pk)


def test_another_rate_is_saved_after_its_effect_was_shown(staff: Client) -> None:
    network = set_up("tapjoy", per_event_cap=700)
    for _ in range(3):
        network.send(network.reward(UserFactory.create(), amount="200"))
    url = reverse("admin:earnings_adnetwork_change", args=[network.row.pk])
    values = _form(is_enabled="on", rate="3.5", per_event_cap="650", daily_cap="9000")
    before = list(AdNetwork.objects.values())

    page = " ".join(staff.post(url, values).content.decode().split())

    assert list(AdNetwork.objects.values()) == before
    assert not LogEntry.objects.exists()
    assert "1.00 of the network's unit yields 3 instead of 1 credits, without bonuses." in page
    assert "Credits before, at 1</th>" in page
    assert "Credits after, at 3.5</th>" in page
    for numbers in (("100.00", "100", "350"), ("1,000.00", "1,000", "3,500"), ("3", "600", "0", "3")):
        assert "".join(f'<td class="number">{number}</td>' for number in numbers) in page

    saved(staff, url, values, role="finance")

    row = AdNetwork.objects.get()
    assert (row.rate, row.per_event_cap, row.daily_cap) == (Decimal("3.5"), 650, 9_000)
    changes = details_of(LogEntry.objects.latest("pk"))["changes"]
    assert changes["rate"] == ["1.00000000", "3.5"]


def test_changes_without_a_new_rate_are_shown_alone(staff: Client) -> None:
    network = set_up("tapjoy", rate=Decimal("2.5"))
    url = reverse("admin:earnings_adnetwork_change", args=[network.row.pk])
    values = _form(is_enabled="on", rate="2.50", daily_cap="77")
    assert staff.post(url, values).context["preview"] is None
    saved(staff, url, values, role="finance")
    assert AdNetwork.objects.get().daily_cap == 77


def test_an_invalid_rate_and_a_read_only_user_get_no_preview(staff: Client) -> None:
    network = set_up("tapjoy")
    url = reverse("admin:earnings_adnetwork_change", args=[network.row.pk])
    before = list(AdNetwork.objects.values())
    for rate in ("0", "-1", "many"):
        assert staff.post(url, _form(is_enabled="on", rate=rate)).context["adminform"].errors
    viewer, person = _browser()
    person.user_permissions.add(Permission.objects.get(codename="view_adnetwork"))
    for extra in ({}, {"_confirmed": "1"}):
        assert viewer.post(url, _form(is_enabled="on", rate="5", **extra)).status_code == 403
    assert list(AdNetwork.objects.values()) == before


def test_a_postback_url_is_shown_once_and_works(staff: Client) -> None:
    network, user = set_up("tapjoy"), UserFactory.create()

    shown = confirm(staff, "earnings_adnetwork", "issue_address", network.row).content.decode()

    match = re.search(r"http://testserver/api/postbacks/tapjoy/([\w-]+)", shown)
    assert match is not None
    approve("finance")
    network.token = match[1]
    assert network.send(network.reward(user)).status == 200
    for page in (_page(staff, "adnetwork_changelist"), _page(staff, "adnetwork_change", network.row.pk)):
        assert match[1] not in page


def test_no_page_and_no_log_shows_a_secret(staff: Client) -> None:
    network, user = set_up("tapjoy"), UserFactory.create()
    network.send(network.reward(user))
    secret = f"rotated-{secrets.token_hex(8)}"
    response = confirm(staff, "earnings_adnetwork", "set_secret", network.row, new_secret=secret)
    request = ApprovalRequest.objects.get()
    queue = "admin:gateway_admin_approvalrequest"
    waiting = staff.get(reverse(f"{queue}_change", args=[request.pk])).content.decode()
    approve("finance")
    network.row.refresh_from_db()

    pages = [
        response.content.decode(),
        waiting,
        _page(staff, "adnetwork_changelist"),
        _page(staff, "adnetwork_change", network.row.pk),
        _page(staff, "adnetwork_history", network.row.pk),
        _page(staff, "postback_changelist"),
        _page(staff, "postback_change", Postback.objects.get().pk),
        str(list(LogEntry.objects.values())),
        repr(network.row),
    ]
    for hidden in (secret, network.secret, network.token, network.row.path_token_hash):
        assert all(hidden not in page for page in pages)


def test_a_weak_network_is_not_enabled_without_limits(staff: Client) -> None:
    token = issue_path_token(slug="cpx-research")
    row = AdNetwork.objects.get()
    url = reverse("admin:earnings_adnetwork_change", args=[row.pk])
    guards = {
        "allowed_addresses": f"{SENDER}, 2a01:4f8:d0a:30ff::2",
        "per_event_cap": "100",
        "daily_cap": "500",
    }

    page = staff.post(url, _form(is_enabled="on", **guards)).content.decode()
    assert "does not cover user, amount and id" in page
    assert not AdNetwork.objects.filter(is_enabled=True).exists()

    saved(staff, url, _form(is_enabled="on", hold_hours="72", **guards), role="finance")
    row = AdNetwork.objects.get(is_enabled=True)
    assert row.allowed_addresses == [SENDER, "2a01:4f8:d0a:30ff::2"]
    assert networks.has_path_token(row, token)


def test_an_invalid_address_list_is_an_error_of_its_field(staff: Client) -> None:
    network = set_up("tapjoy")

    page = staff.post(
        reverse("admin:earnings_adnetwork_change", args=[network.row.pk]),
        _form(allowed_addresses="example.org"),
    ).content.decode()

    assert "Enter IP addresses or networks" in page


def test_only_missing_networks_can_be_added_and_none_deleted(staff: Client) -> None:
    network = set_up("tapjoy")

    page = _page(staff, "adnetwork_add")
    assert 'value="adgem"' in page
    assert 'value="tapjoy"' not in page
    assert staff.post(reverse("admin:earnings_adnetwork_delete", args=[network.row.pk])).status_code == 403
    assert staff.post(reverse("admin:earnings_adnetwork_add"), _form(slug="tapjoy")).status_code == 200
    assert AdNetwork.objects.count() == 1


@pytest.mark.parametrize("model", ["postback", "networkuser"])
def test_rows_are_found_by_profile_and_never_changed(staff: Client, model: str) -> None:
    network, user, other = set_up("tapjoy"), UserFactory.create(), UserFactory.create()
    for person in (user, other):
        network.send(network.reward(person))

    listed = staff.get(
        reverse(f"admin:earnings_{model}_changelist"), {"q": str(user.profile_address)}
    ).content.decode()

    assert str(user.profile_address) in listed
    assert str(other.profile_address) not in listed
    assert staff.post(reverse(f"admin:earnings_{model}_add"), {}).status_code == 403


def test_a_read_only_user_issues_no_address() -> None:
    network = set_up("tapjoy")
    client, person = _browser()
    person.user_permissions.add(Permission.objects.get(codename="view_adnetwork"))
    action = {"action": "issue_address", "_selected_action": [network.row.pk]}

    client.post(reverse("admin:earnings_adnetwork_changelist"), action)

    network.row.refresh_from_db()
    assert networks.has_path_token(network.row, network.token)


@pytest.mark.parametrize("model", ["adnetwork", "postback", "networkuser"])
def test_a_list_takes_the_same_statements_for_more_rows(
    staff: Client, model: str, django_assert_max_num_queries: Any
) -> None:
    network, url = set_up("tapjoy"), reverse(f"admin:earnings_{model}_changelist")
    network.send(network.reward(UserFactory.create()))
    staff.get(url)
    for slug in ("adgem", "bitlabs", "theoremreach"):
        network = set_up(slug)
        for _ in range(4):
            network.send(network.reward(UserFactory.create()))

    with django_assert_max_num_queries(8):
        assert staff.get(url).status_code == 200
