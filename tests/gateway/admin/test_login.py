"""Staff log in with a password and a one-time password."""

import secrets
from datetime import timedelta

import pyotp
import pytest
import time_machine
from django.conf import settings
from django.test import Client
from django.utils import timezone

from tests.staff import browser_of, member
from users.models import Phone, User

pytestmark = pytest.mark.django_db


def employ(devices: int) -> tuple[User, str, list[Phone]]:
    """Return a member of staff, the password, and the second factors."""
    password = secrets.token_urlsafe(16)
    user = User.objects.create_superuser(f"staff-{secrets.token_hex(4)}", password=password)
    made = [Phone.objects.create(user=user, name=f"phone {number}") for number in range(devices)]
    return user, password, made


def log_in(user: User, password: str, token: str, *, address: str = "127.0.0.1") -> int:
    """Return the status of the login: 302 lets in, 200 shows the form again."""
    form = {"username": user.username, "password": password, "otp_token": token}
    return Client(REMOTE_ADDR=address).post("/admin/login/?next=/admin/", form).status_code


def _passwords(device: Phone) -> pyotp.TOTP:
    return pyotp.TOTP(device.shown_key)


def _current(device: Phone) -> str:
    return _passwords(device).now()


def _wrong(device: Phone) -> str:
    """Return a number that the device shows neither now nor for a while before and after."""
    shown = {_passwords(device).at(timezone.now(), counter_offset=step) for step in range(-5, 6)}
    return next(number for number in map("{:06d}".format, range(12)) if number not in shown)


def test_the_only_device_need_not_be_chosen() -> None:
    user, password, (device,) = employ(1)

    assert log_in(user, password, _current(device)) == 302


def test_a_wrong_one_time_password_or_none_is_refused() -> None:
    user, password, (device,) = employ(1)

    assert [log_in(user, password, _wrong(device)), log_in(user, password, "")] == [200, 200]


def test_one_of_several_devices_must_be_chosen() -> None:
    user, password, (device, _) = employ(2)

    assert log_in(user, password, _current(device)) == 200


def test_the_password_alone_does_not_log_in() -> None:
    user, password, _ = employ(0)

    assert log_in(user, password, "123456") == 200


def test_after_five_wrong_passwords_the_right_one_opens_nothing_for_a_while() -> None:
    user, password, (device,) = employ(1)
    other, its_password, (its_device,) = employ(1)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        wrong = [log_in(user, secrets.token_hex(8), _current(device)) for _ in range(5)]
        right = log_in(user, password, _current(device))

        assert (wrong, right) == ([200, 200, 200, 200, 429], 429)
        assert log_in(other, its_password, _current(its_device)) == 302

        clock.shift(settings.AXES_COOLOFF_TIME + timedelta(seconds=1))
        assert log_in(user, password, _current(device)) == 302


def test_addresses_of_one_network_share_their_attempts() -> None:
    user, password, (device,) = employ(1)
    network = f"2001:db8:{secrets.randbelow(2**16):x}:{secrets.randbelow(2**16):x}"
    with time_machine.travel(timezone.now(), tick=False):
        wrong = [
            log_in(user, secrets.token_hex(8), _current(device), address=f"{network}::{host:x}")
            for host in range(1, 6)
        ]
        right = log_in(user, password, _current(device), address=f"{network}::6")

        assert (wrong, right) == ([200, 200, 200, 200, 429], 429)
        # A caller who has locked out one network has not locked out the owner's.
        assert log_in(user, password, _current(device), address="2001:db8:ffff::1") == 302


def test_wrong_one_time_passwords_are_slowed_down() -> None:
    user, password, (device,) = employ(1)
    with time_machine.travel(timezone.now(), tick=False) as clock:
        log_in(user, password, _wrong(device))

        assert log_in(user, password, _current(device)) == 200

        clock.shift(timedelta(seconds=2))
        assert log_in(user, password, _current(device)) == 302


def test_a_one_time_password_opens_once() -> None:
    user, password, (device,) = employ(1)
    number = _current(device)

    assert [log_in(user, password, number), log_in(user, password, number)] == [302, 200]


def test_one_changes_the_own_password_and_logs_out_in_the_products_words() -> None:
    person, new = member("finance"), secrets.token_urlsafe(16)
    old = secrets.token_urlsafe(16)
    person.set_password(old)
    person.save()
    client = browser_of(person)
    page = client.get("/admin/password_change/").content.decode()
    assert "Your password now" in page
    assert "for security" not in page
    form = {"old_password": old, "new_password1": new, "new_password2": new}
    done = client.post("/admin/password_change/", form, follow=True)
    assert "Your password was changed" in done.content.decode()
    person.refresh_from_db()
    assert person.check_password(new)
    gone = client.post("/admin/logout/").content.decode()
    assert "You are logged out" in gone
    assert "quality time" not in gone
