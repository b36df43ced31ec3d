"""Trusted implementations: their rows, their admin, and which code they make trusted."""

import secrets
from collections.abc import Callable

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse

from signer.contracts import code_name, proxy_code
from tests.factories import random_address
from tests.staff import browser_of, confirm, member, saved
from users.models import TrustedImplementation
from users.queries import are_trusted, trusted_codes

pytestmark = pytest.mark.django_db


def _assert_refused(constraint: str, write: Callable[[], object]) -> None:
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        write()


def test_an_implementation_is_an_address_or_a_hash() -> None:
    fields = {"kind": TrustedImplementation.Kind.PROFILE, "name": "a release"}
    both = {"address": random_address(), "code_hash": "0x" + secrets.token_hex(32)}
    for wrong in ({}, both):
        _assert_refused(
            "trustedimplementation_address_or_hash",
            lambda wrong=wrong: TrustedImplementation.objects.create(**fields, **wrong),  # type: ignore[misc]
        )
    for name, value in both.items():
        TrustedImplementation.objects.create(**fields, **{name: value})
        _assert_refused(
            f"trustedimplementation_kind_{name}",
            lambda name=name, value=value: TrustedImplementation.objects.create(**fields, **{name: value}),  # type: ignore[misc]
        )


def test_an_implementation_is_edited_in_the_admin_and_checked() -> None:
    staff = browser_of(member("operations"))
    add = reverse("admin:users_trustedimplementation_add")
    before = TrustedImplementation.objects.count()
    form = {"kind": "profile", "name": "a release", "is_active": "on"}
    code_hash = "0x" + secrets.token_hex(32)
    for wrong in ({}, {"address": "0x12"}, {"address": random_address(), "code_hash": code_hash}):
        response = staff.post(add, {**form, **wrong})
        assert (response.status_code, bool(response.context["errors"])) == (200, True)
    assert TrustedImplementation.objects.count() == before

    address = random_address()
    for right in ({"address": address.lower()}, {"code_hash": code_hash}):
        saved(staff, add, {**form, **right}, role="finance")
    assert TrustedImplementation.objects.filter(address=address, code_hash=None).exists()
    trusted = TrustedImplementation.objects.filter(address=None, code_hash=code_hash)
    assert trusted.get().is_active
    # To stop trusting needs no second person.
    confirm(staff, "users_trustedimplementation", "distrust", trusted.get())
    assert not trusted.get().is_active


@pytest.mark.parametrize(
    ("vetted", "is_trusted"),
    [
        ([("profile", "one"), ("key-manager", "two")], True),
        ([("profile", "one")], False),
        ([("key-manager", "two")], False),
        # Each half as the other one, and one half as both.
        ([("key-manager", "one"), ("profile", "two")], False),
        ([("profile", "one"), ("key-manager", "one")], False),
        ([("profile", "two"), ("key-manager", "two")], False),
        ([("profile", "one"), ("profile", "two")], False),
        ([], False),
    ],
)
@pytest.mark.parametrize("is_proxy", [False, True])
def test_code_is_trusted_only_for_its_vetted_purpose(
    vetted: list[tuple[str, str]], is_trusted: bool, is_proxy: bool
) -> None:
    targets = {name: secrets.token_bytes(20) for name in ("one", "two")}
    codes = {name: proxy_code(target) if is_proxy else target for name, target in targets.items()}
    for kind, name in vetted:
        implementation = {"address" if is_proxy else "code_hash": code_name(codes[name])}
        TrustedImplementation.objects.create(kind=kind, name=name, **implementation)
    names = {"profile_code": code_name(codes["one"]), "key_manager_code": code_name(codes["two"])}
    assert are_trusted(trusted_codes(), **names) is is_trusted
    TrustedImplementation.objects.update(is_active=False)
    assert not are_trusted(trusted_codes(), **names)
