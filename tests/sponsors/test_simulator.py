"""Staff ask whether a sponsor would pay for a call; the response is the relay's, and nothing is stored or counted."""

import re
import secrets
from typing import Any

import pytest
from django.test import Client

from sponsors.models import Policy, Sponsor, Usage
from tests.factories import UserFactory, random_address
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.staff import browser_of, everything, member

pytestmark = pytest.mark.django_db
_FUNCTION = "0x" + secrets.token_hex(4)


@pytest.fixture
def staff() -> Client:
    """Return a browser of support."""
    return browser_of(member("support"))


def _asked(staff: Client, sponsor: Sponsor, **values: Any) -> tuple[str, list[tuple[str, str]]]:
    """Return the response's sentence, and the code of each policy that refuses."""
    call = {
        "profile": random_address(),
        "actions": f"{random_address()} {_FUNCTION}",
        "credits": 100,
        "gas_price": 1,
        **values,
    }
    before = everything()
    page = staff.post(f"/admin/sponsors/sponsor/{sponsor.pk}/simulate/", call)
    assert everything() == before
    assert page.status_code == 200
    sentence, shown = page.context.get("sentence", ""), page.content.decode()
    assert sentence in shown
    return sentence, re.findall(r"<dt[^>]*>(.+?)</dt><dd[^>]*>.*?<code>(.+?)</code></dd>", shown)


def test_the_result_names_the_paying_policy_and_the_rules_of_earlier_ones(staff: Client) -> None:
    sponsor, contract = make_sponsor(), random_address()
    first = make_policy(sponsor, targets=[{"contract": contract, "functions": [_FUNCTION]}]).policy
    second = make_policy(sponsor, position=1, share_percent=75).policy

    assert _asked(staff, sponsor, actions=f"{contract} {_FUNCTION}")[0] == (
        f"Policy {first.name} pays 100 credits, and the user 0."
    )
    assert _asked(staff, sponsor, actions=f"{contract} {_FUNCTION}\nprofile 0x7f23690c") == (
        f"Policy {second.name} pays 75 credits, and the user 25.",
        [(first.name, "sponsor-target")],
    )


def test_if_no_policy_pays_each_names_its_rule(staff: Client) -> None:
    sponsor = make_sponsor()
    small = make_policy(sponsor, call_credits=99).policy
    vouched = make_policy(sponsor, position=1, profiles="vouched").policy
    switched_off = make_policy(sponsor, position=2).policy
    Policy.objects.filter(pk=switched_off.pk).update(is_enabled=False)

    assert _asked(staff, sponsor) == (
        "No policy pays for this call.",
        [(small.name, "sponsor-limit-call"), (vouched.name, "sponsor-voucher-missing")],
    )
    assert _asked(staff, sponsor, voucher_for=vouched.name) == (
        f"Policy {vouched.name} pays 100 credits, and the user 0.",
        [(small.name, "sponsor-limit-call")],
    )


def test_the_users_usage_counts(staff: Client) -> None:
    sponsor, user = make_sponsor(), UserFactory.create()
    version = make_policy(sponsor, user_calls=1)
    Usage.objects.create(
        policy=version.policy,
        scope="user",
        user_number=user.pk,
        begins="1970-01-01T00:00Z",
        credits=5,
        calls=1,
    )

    assert _asked(staff, sponsor, profile=str(user.profile_address))[1] == [
        (version.policy.name, "sponsor-limit-user-calls")
    ]
    assert _asked(staff, sponsor)[1] == []


def test_a_frozen_or_empty_sponsor_pays_for_nothing(staff: Client) -> None:
    empty, frozen = make_sponsor(credits=99), make_sponsor()
    for sponsor in (empty, frozen):
        make_policy(sponsor)
    Sponsor.objects.filter(pk=frozen.pk).update(is_frozen=True)

    assert _asked(staff, empty)[0] == "The call may cost the sponsor 100 credits, and 99 are available."
    assert _asked(staff, frozen)[0] == "The sponsor is frozen, so it pays for no calls."


@pytest.mark.parametrize("values", [{"profile": "0x12"}, {"actions": "anything"}, {"credits": 0}])
def test_an_incomplete_call_description_is_refused(staff: Client, values: dict[str, Any]) -> None:
    sponsor = make_sponsor()

    assert _asked(staff, sponsor, **values) == ("", [])
