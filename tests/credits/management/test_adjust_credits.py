"""`manage.py adjust_credits`."""

import secrets
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from credits.models import CreditEntry, EntrySource
from credits.queries import balance_of
from tests.credits.rows import everything
from tests.factories import random_address
from tests.staff import member
from users.models import User


def _adjust(*arguments: str) -> str:
    out = StringIO()
    call_command("adjust_credits", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("amount", [500, -500])
def test_it_moves_the_balance_either_way_and_prints_both_ends(user: User, funds: int, amount: int) -> None:
    staff = member("support")
    address = user.profile_address or ""
    printed = _adjust(address.lower(), str(amount), "--reason", "paid twice", "--actor", staff.username)
    assert printed.startswith(f"{address}: {amount:+d} credits were posted.")
    entry = CreditEntry.objects.get(source=EntrySource.STAFF_ADJUSTMENT)
    assert (entry.amount, entry.reason, entry.actor) == (amount, "paid twice", staff)
    assert balance_of(user).balance == funds + amount


def test_each_run_adjusts_again_unless_it_has_a_key(user: User, funds: int, key: str) -> None:
    address, actor = user.profile_address or "", member("support").username
    for arguments in (["--key", key], ["--key", key], [], []):
        _adjust(address, "1", "--reason", "paid twice", "--actor", actor, *arguments)
    assert balance_of(user).balance == funds + 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["0", "--reason", "paid twice"], "up or down"),
        (["9007199254740992", "--reason", "paid twice"], "up or down"),
        (["5", "--reason", " "], "Give a reason"),
        (["10000001", "--reason", "paid twice"], "At most 10,000,000 credits at a time"),
        (["5", "--reason", "paid twice", "--actor", "nobody"], "nobody"),
        (["5", "--reason", "paid twice", "--actor", "finance-clerk"], "no role that may ask"),
        (["5"], "--reason"),
        (["1.5", "--reason", "paid twice"], "invalid int"),
    ],
)
def test_an_invalid_argument_is_reported_and_moves_nothing(
    user: User, arguments: list[str], message: str
) -> None:
    clerk = member("support")
    User.objects.filter(pk=member("finance").pk).update(username="finance-clerk")
    before = everything()
    with pytest.raises(CommandError, match=message):
        _adjust(user.profile_address or "", "--actor", clerk.username, *arguments)
    assert everything() == before


@pytest.mark.parametrize("address", [random_address(), "0x12", secrets.token_hex(20)])
def test_an_unknown_address_is_reported_and_opens_no_account(user: User, address: str) -> None:
    before = everything()
    with pytest.raises(CommandError, match=f"No user has the profile {address}"):
        _adjust(address, "5", "--reason", "paid twice", "--actor", "nobody")
    assert everything() == before


def test_a_key_that_named_another_adjustment_is_refused(user: User, key: str) -> None:
    address, named = (
        user.profile_address or "",
        ["--reason", "paid twice", "--actor", member("support").username],
    )
    _adjust(address, "5", "--key", key, *named)
    before = everything()
    with pytest.raises(CommandError, match="used before"):
        _adjust(address, "-5", "--key", key, *named)
    assert everything() == before


def test_above_the_limits_it_waits_as_in_the_admin(user: User, settings: Settings) -> None:
    most = settings.APPROVAL_LIMITS["credits"]["actor"]
    before = everything()
    printed = _adjust(
        user.profile_address or "",
        str(most + 1),
        "--reason",
        "paid twice",
        "--actor",
        member("support").username,
    )
    assert "waits for a second person (finance or superuser)" in printed
    assert everything() == before
