"""Staff try a postback on a network's page and see what it would lead to; nothing is stored."""

import hmac
import secrets
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from earnings.models import AdNetwork
from earnings.services import networks
from earnings.services.trial import try_postback
from tests.earnings.ad_networks import SLUGS, Network, new_reward, set_up
from tests.factories import UserFactory
from tests.staff import browser_of, everything, member
from users.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("short_sidebar")]


@pytest.fixture
def staff() -> Client:
    """Return a browser of operations."""
    return browser_of(member("operations"))


def _address(network: Network, user: User, **changes: Any) -> tuple[str, str]:
    """Return the address that the network would call, and the header that signs it."""
    request = network.request(network.reward(user, **changes))
    address = f"http://testserver/api/postbacks/{network.slug}/{request.path_token}?{request.query.decode()}"
    return address, next(iter(request.headers.values()), "")


def _try(
    staff: Client, network: Network, address: str, signature: str = "", body: str = ""
) -> tuple[str, dict[str, str]]:
    url = f"/admin/earnings/adnetwork/{network.row.pk}/try/"
    page = staff.post(url, {"address": address, "signature": signature, "body": body})
    assert page.content.decode().count("<dt") == len(page.context["details"])
    return page.context["sentence"], dict(page.context["details"])


def test_a_network_that_we_report_to_calls_nothing() -> None:
    result = try_postback(
        network=networks.ensure(slug="push-report"),
        address="http://testserver/api/postbacks/push-report/token?user=1",
        signature="",
        now=timezone.now(),
    )
    assert result.sentence == "This network sends no postbacks."


def test_a_network_that_is_switched_as_it_was_is_not_changed() -> None:
    slug = set_up("tapjoy").slug
    assert [networks.switch(slug=slug, is_enabled=on) for on in (True, False, False, True)] == [
        False,
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(("slug", "is_enabled"), [*((slug, False) for slug in SLUGS), (SLUGS[0], True)])
def test_each_network_can_be_tried_before_and_after_it_is_enabled(
    staff: Client, slug: str, is_enabled: bool
) -> None:
    user, network = UserFactory.create(), set_up(slug, is_enabled=is_enabled, rate="2.5")
    arguments = _address(network, user, amount="7")
    before = everything()

    sentence, details = _try(staff, network, *arguments)

    assert sentence == "It would be accepted."
    assert (details["kind"], details["user"], details["amount"]) == ("Credit", str(user.profile_address), "7")
    assert (details["credits before bonuses"], details["received before"]) == ("17", "no")
    assert everything() == before


def test_a_body_is_tried_as_a_post(staff: Client) -> None:
    user, network = UserFactory.create(), set_up("adgem", is_enabled=False)
    body = f'{{"data": {{"conversion_id": "c", "player_id": "{network.reference(user)}", "amount": 7}}}}'
    signature = hmac.new(network.secret.encode(), body.encode(), "sha256").hexdigest()
    address = f"http://testserver/api/postbacks/adgem/{network.token}"

    assert _try(staff, network, address, signature, body)[1]["amount"] == "7"
    assert _try(staff, network, address, signature, body[:-1] + " }")[0].endswith("bad signature.")


def test_the_page_shows_an_earlier_postback_and_the_effect_of_a_reversal(staff: Client) -> None:
    user, network = UserFactory.create(), set_up("ayet-studios")
    reward = network.reward(user)
    network.send(reward)

    repeat = _try(
        staff, network, *_address(network, user, external_id=reward.external_id, amount=reward.amount)
    )
    reversal = _try(
        staff, network, *_address(network, user, external_id=reward.external_id, is_reversal=True)
    )

    assert repeat[1]["received before"] == "Available: credited"
    assert (reversal[1]["kind"], reversal[1]["takes back"]) == ("Reversal", reward.external_id)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ("signature", "It would be refused: bad signature."),
        ("token", "The path's token is not valid"),
        ("network", "This is not a URL of tapjoy."),
        ("host", "Our URLs begin with http://testserver"),
        ("nothing", "This is not a URL of tapjoy."),
        ("brackets", "This is not a URL."),
        ("secret", "It would be postponed: no secret is configured."),
    ],
)
def test_a_refused_postback_shows_the_reason(staff: Client, error: str, sentence: str) -> None:
    network = set_up("tapjoy")
    address, _ = _address(network, UserFactory.create())
    if error == "secret":
        AdNetwork.objects.update(current_secret="")
    address = {
        "signature": address[:-1] + ("0" if address[-1] != "0" else "1"),
        "token": address.replace(network.token, secrets.token_urlsafe(32)),
        "network": address.replace("tapjoy", "adgem"),
        "host": address.replace("http://testserver", "https://testserver"),
        "nothing": "hello",
        "brackets": "http://[::1/api",
    }.get(error, address)
    before = everything()

    shown_sentence, details = _try(staff, network, address)

    assert shown_sentence.startswith(sentence)
    assert details == {}
    assert everything() == before


def test_a_postback_for_an_unknown_user_is_shown_as_such(staff: Client) -> None:
    network = set_up("tapjoy")
    query = network.request(new_reward()).query.decode()
    before = everything()

    address = f"http://testserver/api/postbacks/tapjoy/{network.token}?{query}"
    sentence, details = _try(staff, network, address + "&x=☃")

    assert sentence.startswith("It would be stored without a credit")
    assert "user" not in details
    assert everything() == before


def test_a_network_that_calls_nothing_has_no_button(staff: Client) -> None:
    for slug, is_offered in (("push-report", False), ("tapjoy", True)):
        row = networks.ensure(slug=slug)
        page = staff.get(f"/admin/earnings/adnetwork/{row.pk}/change/").content.decode()
        assert (f"/admin/earnings/adnetwork/{row.pk}/try/" in page) is is_offered
    assert (
        "/try/"
        not in browser_of(member("support"))
        .get(f"/admin/earnings/adnetwork/{row.pk}/change/")
        .content.decode()
    )
    assert staff.get("/admin/earnings/adnetwork/0/try/").status_code == 404
