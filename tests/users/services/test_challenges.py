"""Challenges are composed here, limited per profile and caller, and kept no longer than their refusals need."""

import secrets
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
from django.utils.timezone import now

from tests.factories import random_address
from users.models import SignInChallenge
from users.services import sign_in

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=2))])
def test_the_message_is_eip_4361_over_the_settings_and_nothing_of_the_caller(
    zone: tzinfo, settings: Any
) -> None:
    settings.AUTH_DOMAIN, settings.PUBLIC_URL, settings.CHAIN_ID = "pay.example", "https://pay.example", 42
    address, moment = random_address(), datetime(2031, 2, 3, 4, 5, 6, 789_000, UTC).astimezone(zone)

    challenge = sign_in.issue_challenge(profile_address=address, client="c", now=moment)

    assert challenge.message.split("\n") == [
        "pay.example wants you to sign in with your Ethereum account:",
        address,
        "",
        sign_in.STATEMENT,
        "",
        "URI: https://pay.example",
        "Version: 1",
        "Chain ID: 42",
        f"Nonce: {challenge.nonce}",
        "Issued At: 2031-02-03T04:05:06.789Z",
        "Expiration Time: 2031-02-03T04:10:06.789Z",
    ]
    assert challenge.expires_at == moment + timedelta(minutes=5)


def test_nonces_are_alphanumeric_of_128_bits_and_never_repeat() -> None:
    nonces = {
        sign_in.issue_challenge(profile_address=random_address(), client="c", now=now()).nonce
        for _ in range(50)
    }

    assert len(nonces) == 50
    assert all(len(nonce) == 22 and nonce.isalnum() and nonce.isascii() for nonce in nonces)


def test_a_caller_keeps_its_newest_challenges_of_a_profile_and_others_stay_unchanged() -> None:
    address, start = random_address(), now()
    other_profiles = sign_in.issue_challenge(profile_address=random_address(), client="c", now=start)
    issued = [
        sign_in.issue_challenge(profile_address=address, client="c", now=start + timedelta(seconds=second))
        for second in range(sign_in.MAX_OPEN_PER_CLIENT + 3)
    ]

    kept = set(SignInChallenge.objects.filter(profile_address=address).values_list("pk", flat=True))
    assert kept == {challenge.pk for challenge in issued[3:]}
    assert SignInChallenge.objects.filter(pk=other_profiles.pk).exists()


def test_a_caller_cannot_evict_challenges_of_others() -> None:
    address, start = random_address(), now()
    own = sign_in.issue_challenge(profile_address=address, client="own", now=start)
    for second in range(sign_in.MAX_OPEN_PER_CLIENT + 3):
        sign_in.issue_challenge(
            profile_address=address, client="other", now=start + timedelta(seconds=second)
        )

    taken = sign_in.consume_challenge(nonce=own.nonce, profile_address=address, now=start)

    assert taken.pk == own.pk


def test_a_profile_flooded_from_many_networks_can_still_sign_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sign_in, "MAX_OPEN_PER_PROFILE", 30)
    address, start = random_address(), now()
    owners = sign_in.issue_challenge(profile_address=address, client="own", site="home", now=start)
    for second in range(1, 200):
        # From one organisation's networks, each of which stays below the limit of a client.
        sign_in.issue_challenge(
            profile_address=address,
            client=f"network {second % 67}",
            site=f"site {second % 3}",
            now=start + timedelta(seconds=second),
        )

    late = sign_in.issue_challenge(
        profile_address=address, client="own", site="home", now=start + timedelta(seconds=200)
    )

    assert SignInChallenge.objects.filter(profile_address=address).count() <= 30
    for challenge in (owners, late):
        taken = sign_in.consume_challenge(
            nonce=challenge.nonce, profile_address=address, now=start + timedelta(seconds=201)
        )
        assert taken.pk == challenge.pk


def test_a_flooded_profile_first_loses_challenges_superseded_by_client_and_site(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sign_in, "MAX_OPEN_PER_PROFILE", 6)
    address, start, other = random_address(), now(), random_address()
    elsewhere = sign_in.issue_challenge(profile_address=other, client="busy", site="large", now=start)
    places = [("calm", "large"), ("busy", "large"), ("busy", "large"), ("busy", "large"), ("own", "home")]
    issued = [
        sign_in.issue_challenge(
            profile_address=address, client=client, site=site, now=start + timedelta(seconds=second)
        )
        for second, (client, site) in enumerate([*places, ("own", "home"), ("new", "new")])
    ]

    kept = set(SignInChallenge.objects.values_list("pk", flat=True))
    # The oldest of the busiest client at the busiest site.
    assert {challenge.pk for challenge in [elsewhere, *issued]} - kept == {issued[1].pk}


def test_consumed_challenges_are_kept_so_that_a_repeat_is_refused_as_such() -> None:
    address, start = random_address(), now()
    first = sign_in.issue_challenge(profile_address=address, client="c", now=start)
    sign_in.consume_challenge(nonce=first.nonce, profile_address=None, now=start)
    for second in range(sign_in.MAX_OPEN_PER_CLIENT + 1):
        sign_in.issue_challenge(profile_address=address, client="c", now=start + timedelta(seconds=second))

    assert SignInChallenge.objects.filter(pk=first.pk).exists()


def test_the_purge_waits_an_hour_after_expiry() -> None:
    challenge = sign_in.issue_challenge(
        profile_address=random_address(), client=secrets.token_hex(4), now=now()
    )
    limit = challenge.expires_at + timedelta(hours=1)

    assert sign_in.purge_challenges(now=limit) == 0
    assert sign_in.purge_challenges(now=limit + timedelta(milliseconds=1)) == 1
    assert not SignInChallenge.objects.exists()
