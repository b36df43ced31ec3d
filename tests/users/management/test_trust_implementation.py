"""`manage.py trust_implementation`."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.factories import random_address
from users.models import TrustedImplementation

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("trust_implementation", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("kind", TrustedImplementation.Kind.values)
def test_it_trusts_an_address_once_in_any_casing(kind: str) -> None:
    address = random_address()
    first = run(kind, "--address", address.lower(), "--name", "a release")
    assert first == f"trusted: {kind} {address}\n"
    assert run(kind, "--address", address, "--name", "again") == f"already trusted: {kind} {address}\n"
    row = TrustedImplementation.objects.get(address=address)
    assert (row.kind, row.name, row.is_active) == (kind, "a release", True)


def test_what_staff_deactivated_stays_so() -> None:
    address = random_address()
    run("profile", "--address", address, "--name", "a release")
    TrustedImplementation.objects.filter(address=address).update(is_active=False)
    assert run("profile", "--address", address, "--name", "a release").startswith("already trusted")
    assert not TrustedImplementation.objects.get(address=address).is_active


@pytest.mark.parametrize("address", ["", "0x12", "no address", random_address()[:-1] + "g"])
def test_what_is_no_address_is_refused(address: str) -> None:
    before = TrustedImplementation.objects.count()
    with pytest.raises(CommandError):
        run("profile", "--address", address, "--name", "a release")
    assert TrustedImplementation.objects.count() == before


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(CommandError):
        run("wallet", "--address", random_address(), "--name", "a release")
