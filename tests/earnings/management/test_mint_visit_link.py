"""`manage.py mint_visit_link`: the printed link pays its user once."""

from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from credits.queries import balance_of
from earnings.models import Postback
from earnings.services import networks
from tests.earnings.ad_networks import set_up
from tests.factories import UserFactory, random_address
from tests.staff import approve, member

pytestmark = pytest.mark.django_db


def _mint(*arguments: Any) -> str:
    out, actor = StringIO(), member("operations").username
    call_command("mint_visit_link", *arguments, "--actor", actor, "--reason", "a campaign", stdout=out)
    return out.getvalue().strip()


def test_the_link_pays_once_and_names_no_user() -> None:
    set_up("visit-link", rate=10)
    user = UserFactory.create()
    link = _mint(str(user.profile_address).lower(), "autumn", "--amount", "2.5")
    assert link.startswith("http://testserver/api/postbacks/visit-link/")
    assert str(user.profile_address)[2:].lower() not in link.lower()

    responses = [Client().get(link.removeprefix("http://testserver")) for _ in range(2)]

    assert [response.status_code for response in responses] == [200, 200]
    assert balance_of(user).available == 25


def test_two_links_of_one_campaign_pay_twice() -> None:
    set_up("visit-link")
    user = UserFactory.create()

    for _ in range(2):
        Client().get(_mint(user.profile_address, "autumn").removeprefix("http://testserver"))

    assert balance_of(user).available == 2


def test_above_the_limits_the_same_key_prints_the_link_after_a_second_approval(settings: Any) -> None:
    set_up("visit-link", rate=10)
    user, actor = UserFactory.create(), member("operations").username
    limits = settings.APPROVAL_LIMITS["credits"]
    settings.APPROVAL_LIMITS = {**settings.APPROVAL_LIMITS, "credits": {**limits, "actor": 99}}

    def mint() -> str:
        out, named = StringIO(), ("--actor", actor, "--reason", "a campaign", "--key", "mine")
        call_command("mint_visit_link", user.profile_address, "autumn", "--amount", "10", *named, stdout=out)
        return out.getvalue().strip()

    assert "waits for a second person" in mint()
    assert "waits for a second person" in mint()
    approve("finance")
    link = mint()
    assert link == mint()
    assert Client().get(link.removeprefix("http://testserver")).status_code == 200
    assert balance_of(user).available == 100


@pytest.mark.parametrize(
    "arguments",
    [
        ("--amount", "0"),
        ("--amount", "-1"),
        ("--hours", "0"),
        ("--amount", "x"),
        # The link could carry it, but not be read.
        ("--amount", "NaN"),
        ("--amount", "sNaN"),
        ("--amount", "Infinity"),
        ("--amount", "1E+12"),
        ("--amount", "1E-13"),
        ("--amount", f"1.{'1' * 13}"),
        ("--hours", str(10**10)),
        ("--hours", str(10**20)),
        ("--hours", str(24 * 366 * 10_000)),
    ],
)
def test_amount_and_lifetime_must_be_positive_and_limited(arguments: tuple[str, ...]) -> None:
    set_up("visit-link")

    with pytest.raises(CommandError):
        _mint(UserFactory.create().profile_address, "autumn", *arguments)


@pytest.mark.parametrize("amount", ["999999999999", "1E+2", "0.000000000001", "7.500000000001", "٣", "１２"])
def test_a_link_carries_exactly_its_amount(amount: str, settings: Any) -> None:
    settings.APPROVAL_LIMITS = {"credits": dict.fromkeys(settings.APPROVAL_LIMITS["credits"], 10**13)}
    set_up("visit-link")

    link = _mint(UserFactory.create().profile_address, "autumn", "--amount", amount)

    assert Client().get(link.removeprefix("http://testserver")).status_code == 200
    assert Postback.objects.get().amount == Decimal(amount)


def test_a_campaign_name_is_limited_by_the_length_of_the_path() -> None:
    set_up("visit-link")
    address = UserFactory.create().profile_address

    link = _mint(address, "autumn " * 80)
    assert Client().get(link.removeprefix("http://testserver")).status_code == 200
    with pytest.raises(CommandError, match="campaign"):
        _mint(address, "autumn " * 200)


def test_an_unknown_profile_gets_no_link() -> None:
    set_up("visit-link")

    with pytest.raises(CommandError, match="No user"):
        _mint(random_address(), "autumn")


def test_without_a_secret_or_while_disabled_no_link_is_made() -> None:
    user = UserFactory.create()
    networks.configure(slug="visit-link", is_enabled=True)
    with pytest.raises(CommandError, match="no secret"):
        _mint(user.profile_address, "autumn")
    set_up("visit-link", is_enabled=False)
    with pytest.raises(CommandError, match="are disabled"):
        _mint(user.profile_address, "autumn")
    assert not Postback.objects.exists()
