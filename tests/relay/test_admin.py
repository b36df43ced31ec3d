"""The relay in the admin: everything to find, little to change."""

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django_otp import DEVICE_ID_SESSION_KEY
from django_otp.plugins.otp_totp.models import TOTPDevice

from gateway.admin.audit import sentence_of
from gateway.chain.fees import Fees
from relay.models import Relayer, RelayTransaction
from relay.services import replacement
from tests.factories import UserFactory, random_address
from tests.relay.chain import GWEI
from tests.relay.rows import everything
from tests.relay.workers import broadcast_all, later
from tests.staff import confirm
from users.models import TrustedImplementation, User

pytestmark = pytest.mark.django_db
Accept = Callable[..., RelayTransaction]


@pytest.fixture
def staff(client: Client) -> Client:
    """Return a browser of a superuser who has shown a second factor."""
    person = UserFactory.create(profile_address=None, is_staff=True, is_superuser=True)
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    session = client.session
    session[DEVICE_ID_SESSION_KEY] = TOTPDevice.objects.create(user=person).persistent_id
    session.save()
    return client


def results(staff: Client, model: str, **query: str) -> list[Any]:
    """Return the rows that a list page shows."""
    page = staff.get(reverse(f"admin:relay_{model}_changelist"), query)
    assert page.status_code == 200
    return list(page.context["cl"].result_list)


def test_a_transaction_is_found_by_any_hash_and_by_address(staff: Client, accept: Accept) -> None:
    row, other = accept(), accept(channel=secrets.randbits(120))
    broadcast_all()
    replacement.replace(
        attempt_id=row.attempts.get().pk, fees=Fees(9 * GWEI, 2 * GWEI, 9 * GWEI), now=later(0)
    )
    for attempt in row.attempts.all():
        assert results(staff, "relaytransaction", q=attempt.transaction_hash) == [row]
        assert results(staff, "attempt", q=attempt.transaction_hash) == [attempt]
    for address in (row.profile_address, row.profile_address.lower()):
        assert results(staff, "relaytransaction", q=address) == [other, row]
    assert results(staff, "relaytransaction", q="no such thing") == []


@pytest.mark.parametrize("model", ["relaytransaction", "attempt", "relayer"])
def test_rows_are_shown_and_never_added_changed_or_deleted(staff: Client, accept: Accept, model: str) -> None:
    accept()
    row = results(staff, model)[0]
    before = everything()
    change = reverse(f"admin:relay_{model}_change", args=[row.pk])
    shown = staff.get(change)
    assert shown.status_code == 200
    assert b'name="_save"' not in shown.content
    for url in (
        change,
        reverse(f"admin:relay_{model}_add"),
        reverse(f"admin:relay_{model}_delete", args=[row.pk]),
    ):
        assert staff.post(url, {"post": "yes", "status": "Success"}).status_code == 403
    assert everything() == before


def test_a_relayer_is_paused_and_resumed(staff: Client, relayers: list[Relayer]) -> None:
    chosen = relayers[1]
    for action, expected in (("pause", False), ("resume", True)):
        confirm(staff, "relay_relayer", action, chosen)
        active = {relayer.pk: relayer.is_active for relayer in Relayer.objects.all()}
        assert active == {relayer.pk: expected if relayer == chosen else True for relayer in relayers}
        # Once more changes nothing, and says nothing.
        confirm(staff, "relay_relayer", action, chosen)
    entries = LogEntry.objects.filter(object_id=str(chosen.pk)).order_by("pk")
    assert [sentence_of(entry) for entry in entries] == ["pause", "resume"]


def test_who_may_only_look_can_pause_no_relayer(staff: Client, relayers: list[Relayer]) -> None:
    person = User.objects.get(is_staff=True)
    person.is_superuser = False
    person.save()
    person.user_permissions.add(Permission.objects.get(codename="view_relayer"))
    url = reverse("admin:relay_relayer_changelist")
    assert b'value="pause"' not in staff.get(url).content
    assert confirm(staff, "relay_relayer", "pause", relayers[0]).status_code == 403
    assert not Relayer.objects.filter(is_active=False).exists()

    person.user_permissions.add(Permission.objects.get(codename="pause_relayer"))
    assert b'value="pause"' in staff.get(url).content
    confirm(staff, "relay_relayer", "pause", relayers[0])
    assert Relayer.objects.get(is_active=False) == relayers[0]


def test_searching_compares_what_is_indexed(staff: Client, accept: Accept) -> None:
    row = accept()
    for model, term in (
        ("relaytransaction", row.transaction_hash.upper().replace("0X", "0x")),
        ("relaytransaction", row.profile_address.lower()),
        ("attempt", row.transaction_hash.upper()),
    ):
        with CaptureQueriesContext(connection) as queries:
            assert len(results(staff, model, q=term)) == 1
        assert not [query for query in queries if "UPPER(" in query["sql"]]


def test_trusted_code_is_edited_and_nonsense_is_refused(staff: Client) -> None:
    add = reverse("admin:users_trustedimplementation_add")
    before = TrustedImplementation.objects.count()
    known = {"kind": "profile", "name": "a release", "is_active": "on"}
    code_hash = "0x" + secrets.token_hex(32)
    for wrong in ({}, {"address": "0x12"}, {"address": random_address(), "code_hash": code_hash}):
        answer = staff.post(add, {**known, **wrong})
        assert (answer.status_code, bool(answer.context["errors"])) == (200, True)
    assert TrustedImplementation.objects.count() == before

    address = random_address()
    for right in ({"address": address.lower()}, {"code_hash": code_hash}):
        assert staff.post(add, {**known, **right}).status_code == 302
    assert TrustedImplementation.objects.filter(address=address, code_hash=None).exists()
    assert TrustedImplementation.objects.filter(address=None, code_hash=code_hash).exists()


@pytest.mark.parametrize("model", ["relaytransaction", "attempt"])
def test_a_list_asks_the_database_no_more_for_more_rows(
    staff: Client, accept: Accept, model: str, django_assert_max_num_queries: Any
) -> None:
    for _ in range(6):
        accept(channel=secrets.randbits(120))
    results(staff, model)
    with django_assert_max_num_queries(8):
        assert len(results(staff, model)) == 6
