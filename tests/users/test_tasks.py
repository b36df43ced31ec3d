"""The tasks that beat runs: their names, and arguments that later versions may add."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils.timezone import now

from tests.factories import random_address
from tests.fakes.profiles import Profile
from tests.users.auth_client import signed_in
from users import tasks
from users.models import IssuerKeySet, SignInChallenge, SignInSession
from users.services import sign_in

pytestmark = pytest.mark.django_db


def test_the_purge_deletes_expired_challenges_and_keeps_open_ones_and_sessions(profile: Profile) -> None:
    signed_in(profile)
    old = now() - timedelta(hours=2)
    sign_in.issue_challenge(profile_address=random_address(), client="c", now=old)
    fresh = sign_in.issue_challenge(profile_address=random_address(), client="c", now=now())

    tasks.purge(later_argument=1)

    assert fresh in SignInChallenge.objects.all()
    assert not SignInChallenge.objects.filter(issued_at=old).exists()
    assert SignInSession.objects.count() == 1


def test_without_an_external_issuer_no_keys_are_fetched(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.AUTH_EXTERNAL_JWKS_URL = ""

    tasks.refresh_issuer_keys(later_argument=1)

    # A URL that does not respond would be named in the log.
    assert caplog.text == ""
    assert not IssuerKeySet.objects.exists()
