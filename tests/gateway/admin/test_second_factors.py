"""The key of a second factor is shown once, when it is made, and never again."""

from base64 import b32encode

import pyotp
import pytest
from django.test import Client
from django_otp.plugins.otp_totp.models import TOTPDevice

from tests.factories import UserFactory
from tests.staff import log_in_staff

pytestmark = pytest.mark.django_db
DEVICES = "/admin/otp_totp/totpdevice/"


def _spellings(device: TOTPDevice) -> tuple[str, str]:
    return device.key, b32encode(device.bin_key).decode()


def test_the_key_is_shown_once_when_it_is_made(client: Client) -> None:
    log_in_staff(client)
    colleague = UserFactory.create(profile_address=None, is_staff=True)

    made = client.post(
        f"{DEVICES}add/", {"user": colleague.pk, "name": "phone", "confirmed": "on"}, follow=True
    ).content.decode()
    later = client.get(DEVICES).content.decode()

    device = TOTPDevice.objects.get(user=colleague)
    key = b32encode(device.bin_key).decode()
    assert device.verify_token(int(pyotp.TOTP(key).now()))
    assert key in made
    assert not any(spelling in later for spelling in _spellings(device))


@pytest.mark.parametrize("page", ["change/", "history/", "config/", "qrcode/"])
def test_no_page_shows_it_again(client: Client, page: str) -> None:
    log_in_staff(client)
    device = TOTPDevice.objects.create(user=UserFactory.create(), name="phone")
    path = f"{DEVICES}{device.pk}/{page}"

    answer = client.get(path)

    assert answer.status_code == (403 if page in {"config/", "qrcode/"} else 200)
    assert not any(spelling in answer.content.decode() for spelling in _spellings(device))


def test_a_key_that_somebody_chose_is_not_taken(client: Client) -> None:
    log_in_staff(client)
    colleague, chosen = UserFactory.create(profile_address=None, is_staff=True), "ab" * 20

    client.post(f"{DEVICES}add/", {"user": colleague.pk, "name": "phone", "confirmed": "on", "key": chosen})

    assert TOTPDevice.objects.get(user=colleague).key != chosen
