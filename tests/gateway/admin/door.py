"""Staff who are inside already."""

from django.test import Client
from django_otp import DEVICE_ID_SESSION_KEY
from django_otp.plugins.otp_totp.models import TOTPDevice

from tests.factories import UserFactory
from users.models import User


def let_in(client: Client, *, is_superuser: bool = True) -> User:
    """Log a new member of staff in, with the second factor shown."""
    person = UserFactory.create(profile_address=None, is_staff=True, is_superuser=is_superuser)
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    session = client.session
    session[DEVICE_ID_SESSION_KEY] = TOTPDevice.objects.create(user=person).persistent_id
    session.save()
    return person
