"""`manage.py trust_implementation`."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from gateway.staff.models import ApprovalRequest
from tests.factories import random_address
from tests.staff import approve, member
from users.models import TrustedImplementation

pytestmark = pytest.mark.django_db


def run(*arguments: str, role: str = "operations") -> str:
    out, actor = StringIO(), member(role).username
    call_command("trust_implementation", *arguments, "--actor", actor, "--reason", "reviewed", stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("kind", TrustedImplementation.Kind.values)
def test_the_command_requests_trust_for_an_address_in_any_casing_and_finance_decides(kind: str) -> None:
    address = random_address()
    output = run(kind, "--address", address.lower(), "--name", "a release")
    assert output.startswith(f"{kind} {address}: Request ")
    assert "waits for a second person (finance or superuser)" in output
    assert not TrustedImplementation.objects.filter(address=address).exists()
    assert "is saved" in approve("finance")
    row = TrustedImplementation.objects.get(address=address)
    assert (row.kind, row.name, row.is_active) == (kind, "a release", True)


def test_an_existing_row_is_left_to_the_admin_even_if_deactivated() -> None:
    row = TrustedImplementation.objects.latest("pk")
    TrustedImplementation.objects.filter(pk=row.pk).update(is_active=False)
    assert run(row.kind, "--address", str(row.address), "--name", "x").startswith("There is a row")
    assert not ApprovalRequest.objects.exists()


@pytest.mark.parametrize("role", ["support", "finance"])
def test_other_roles_cannot_request_trust(role: str) -> None:
    with pytest.raises(CommandError, match="has no role"):
        run("profile", "--address", random_address(), "--name", "x", role=role)


@pytest.mark.parametrize("address", ["", "0x12", "no address", random_address()[:-1] + "g"])
def test_an_invalid_address_is_refused(address: str) -> None:
    before = TrustedImplementation.objects.count()
    with pytest.raises(CommandError):
        run("profile", "--address", address, "--name", "a release")
    assert TrustedImplementation.objects.count() == before


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(CommandError):
        run("wallet", "--address", random_address(), "--name", "a release")
