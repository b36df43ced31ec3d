"""Staff set up their own second factor: offered by two people, once, and with codes for the day the phone is lost."""

import re
from datetime import timedelta
from typing import Any

import pyotp
import pytest
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from tests.staff import member
from tests.threads import at_once
from users.models import Phone, RecoveryCodes, User
from users.services import second_factors

pytestmark = pytest.mark.django_db
LOGIN, ENROL, OWN = "/admin/login/?next=/admin/", "/admin/second-factor/enrol/", "/admin/second-factor/"


def colleague() -> User:
    """Return a new clerk as approvals make one: with a password, and a phone to set up."""
    person = member("support")
    person.set_password("correct horse battery")
    person.save()
    second_factors.offer_phone(person)
    return person


def log_in(person: User, token: str = "", client: Client | None = None) -> Any:
    form = {"username": person.username, "password": "correct horse battery", "otp_token": token}
    return (client or Client(REMOTE_ADDR="127.0.0.1")).post(LOGIN, form)


def number_of(phone: Phone) -> str:
    return pyotp.TOTP(phone.shown_key).now()


def codes_on(answer: Any) -> list[str]:
    return re.findall(r"<li>([a-z2-7]{4}(?:-[a-z2-7]{4}){3})</li>", answer.content.decode())


def enrolled(person: User) -> tuple[Client, list[str]]:
    """Set up the person's phone as a browser would; return the browser and the recovery codes."""
    client = Client(REMOTE_ADDR="127.0.0.1")
    assert log_in(person, client=client)["Location"] == ENROL
    phone = Phone.objects.get(user=person)
    page = client.get(ENROL)
    assert page.context["key"] == phone.shown_key
    assert page.context["picture"].startswith("data:image/svg+xml")
    return client, codes_on(client.post(ENROL, {"token": number_of(phone)}))


def test_at_the_first_login_a_phone_is_set_up_and_the_codes_are_shown_once() -> None:
    person = colleague()
    client, codes = enrolled(person)
    assert len(set(codes)) == 10
    assert client.get("/admin/").status_code == 200
    stored = RecoveryCodes.objects.get(user=person)
    assert not any(part in str(stored.hashes) for code in codes for part in (code, code.replace("-", "")))
    # The page is not shown again, and the phone not offered to anybody else.
    assert client.post(ENROL, {"token": "123456"})["Location"] == "/admin/login/"
    assert log_in(person).status_code == 200
    messages = " ".join(LogEntry.objects.values_list("change_message", flat=True))
    assert "set up a phone" in messages
    assert not any(code in messages for code in codes)


def test_until_then_the_password_opens_that_page_alone() -> None:
    person, client = colleague(), Client(REMOTE_ADDR="127.0.0.1")
    before = Phone.objects.get(user=person)
    log_in(person, client=client)
    for path in ("/admin/", OWN, "/admin/users/user/"):
        assert "/admin/login/" in client.get(path)["Location"]
    assert "wrong" in str(client.post(ENROL, {"token": "000000"}).context["form"].errors)
    after = Phone.objects.get(user=person)
    assert (after.confirmed, after.key, RecoveryCodes.objects.exists()) == (False, before.key, False)
    assert Client().get(ENROL)["Location"] == "/admin/login/"
    person.set_password("another one that is long")
    person.save()
    assert client.get(ENROL)["Location"] == "/admin/login/"


@pytest.mark.parametrize("what", ["not offered", "too long ago", "has a phone", "closed account"])
def test_a_password_alone_cannot_enrol_another_phone(what: str) -> None:
    person = colleague()
    offers = Phone.objects.filter(user=person)
    match what:
        case "not offered":
            offers.delete()
        case "too long ago":
            hours = settings.STAFF_ENROLMENT_HOURS
            offers.update(created_at=timezone.now() - timedelta(hours=hours, seconds=1))
        case "has a phone":
            Phone.objects.create(user=person, name="phone")
        case "closed account":
            User.objects.filter(pk=person.pk).update(is_active=False)
    before = list(Phone.objects.values())
    client = Client(REMOTE_ADDR="127.0.0.1")
    assert log_in(person, client=client).status_code == 200
    assert client.get(ENROL)["Location"] == "/admin/login/"
    assert list(Phone.objects.values()) == before


def test_a_recovery_code_logs_in_once_and_leads_to_another_phone() -> None:
    person = colleague()
    _, codes = enrolled(person)
    old = Phone.objects.get(user=person)
    client = Client(REMOTE_ADDR="127.0.0.1")
    assert log_in(person, codes[0].upper().replace("-", " "), client)["Location"] == "/admin/"
    assert "9 are left" in client.get("/admin/").content.decode()
    assert log_in(person, codes[0]).status_code == 200
    RecoveryCodes.objects.update(throttling_failure_timestamp=None, throttling_failure_count=0)

    assert client.post(OWN, {"token": codes[1], "do": "move"})["Location"] == ENROL
    new = Phone.objects.get(user=person, confirmed=False)
    fresh = codes_on(client.post(ENROL, {"token": number_of(new)}))
    assert [device.pk for device in Phone.objects.filter(user=person)] == [new.pk] != [old.pk]
    assert log_in(person, codes[2]).status_code == 200
    RecoveryCodes.objects.update(throttling_failure_timestamp=None, throttling_failure_count=0)
    assert log_in(person, fresh[0]).status_code == 302


def test_new_recovery_codes_require_a_proof_and_revoke_the_old_ones() -> None:
    person = colleague()
    client, codes = enrolled(person)
    hashes = RecoveryCodes.objects.get(user=person).hashes
    refused = client.post(OWN, {"token": "not-a-code", "do": "codes"})
    assert refused.context["form"].errors
    assert RecoveryCodes.objects.get(user=person).hashes == hashes
    RecoveryCodes.objects.update(throttling_failure_timestamp=None, throttling_failure_count=0)
    fresh = codes_on(client.post(OWN, {"token": codes[0], "do": "codes"}))
    assert set(fresh).isdisjoint(codes)
    assert len(RecoveryCodes.objects.get(user=person).hashes) == len(fresh) == 10


@pytest.mark.django_db(transaction=True)
def test_of_two_concurrent_logins_with_one_code_one_succeeds() -> None:
    person = colleague()
    code = second_factors.renew_codes(person)[0]
    proofs = at_once([lambda: second_factors.proves(person, token=code)] * 4)
    assert proofs.count(True) == 1
    assert len(RecoveryCodes.objects.get(user=person).hashes) == 9
