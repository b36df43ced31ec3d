"""`manage.py mint_visit_link`: the printed link pays its user once."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from credits.models import Postback
from credits.queries import balance_of
from credits.services import ad_networks
from tests.credits.networks_at_work import set_up
from tests.factories import UserFactory, random_address

pytestmark = pytest.mark.django_db


def _mint(*arguments: Any) -> str:
    out = StringIO()
    call_command("mint_visit_link", *arguments, stdout=out)
    return out.getvalue().strip()


def test_the_link_pays_once_and_names_no_user() -> None:
    set_up("visit-link", rate=10)
    user = UserFactory.create()
    link = _mint(str(user.profile_address).lower(), "autumn", "--amount", "2.5")
    assert link.startswith("http://testserver/api/postbacks/visit-link/")
    assert str(user.profile_address)[2:].lower() not in link.lower()

    answers = [Client().get(link.removeprefix("http://testserver")) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert balance_of(user).available == 25


def test_two_links_of_one_campaign_pay_twice() -> None:
    set_up("visit-link")
    user = UserFactory.create()

    for _ in range(2):
        Client().get(_mint(user.profile_address, "autumn").removeprefix("http://testserver"))

    assert balance_of(user).available == 2


@pytest.mark.parametrize(
    "arguments", [("--amount", "0"), ("--amount", "-1"), ("--hours", "0"), ("--amount", "x")]
)
def test_a_link_is_worth_something_for_some_time(arguments: tuple[str, ...]) -> None:
    set_up("visit-link")

    with pytest.raises(CommandError):
        _mint(UserFactory.create().profile_address, "autumn", *arguments)


def test_a_stranger_gets_no_link() -> None:
    set_up("visit-link")

    with pytest.raises(CommandError, match="No user"):
        _mint(random_address(), "autumn")


def test_without_a_secret_or_while_disabled_no_link_is_made() -> None:
    user = UserFactory.create()
    ad_networks.configure(slug="visit-link", is_enabled=True)
    with pytest.raises(CommandError, match="no secret"):
        _mint(user.profile_address, "autumn")
    set_up("visit-link", is_enabled=False)
    with pytest.raises(CommandError, match="not enabled"):
        _mint(user.profile_address, "autumn")
    assert not Postback.objects.exists()
