"""A member of staff at a browser."""

from django.contrib.auth.models import Permission
from django.test import Client
from django_otp import DEVICE_ID_SESSION_KEY
from django_otp.plugins.otp_totp.models import TOTPDevice

from tests.factories import UserFactory


def browser_of(client: Client, *permissions: str) -> Client:
    """Sign staff with these permissions in, second factor shown; without any, a superuser."""
    person = UserFactory.create(profile_address=None, is_staff=True, is_superuser=not permissions)
    person.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    session = client.session
    session[DEVICE_ID_SESSION_KEY] = TOTPDevice.objects.create(user=person).persistent_id
    session.save()
    return client
