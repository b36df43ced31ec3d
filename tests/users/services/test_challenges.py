"""Challenges are composed here, limited per profile and caller, and kept no longer than their refusals need."""

import secrets
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
from django.utils.timezone import now

from gateway.common.errors import TooManyRequests
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


def test_a_caller_keeps_its_newest_open_challenges_of_a_profile_and_nobody_elses_are_touched() -> None:
    address, start = random_address(), now()
    other_profiles = sign_in.issue_challenge(profile_address=random_address(), client="c", now=start)
    issued = [
        sign_in.issue_challenge(profile_address=address, client="c", now=start + timedelta(seconds=second))
        for second in range(sign_in.MAX_OPEN_PER_CLIENT + 3)
    ]

    kept = set(SignInChallenge.objects.filter(profile_address=address).values_list("pk", flat=True))
    assert kept == {challenge.pk for challenge in issued[3:]}
    assert SignInChallenge.objects.filter(pk=other_profiles.pk).exists()


def test_a_stranger_pushes_out_nobody_elses_challenges() -> None:
    address, start = random_address(), now()
    own = sign_in.issue_challenge(profile_address=address, client="own", now=start)
    for second in range(sign_in.MAX_OPEN_PER_CLIENT + 3):
        sign_in.issue_challenge(
            profile_address=address, client="other", now=start + timedelta(seconds=second)
        )

    taken = sign_in.consume_challenge(nonce=own.nonce, profile_address=address, now=start)

    assert taken.pk == own.pk


def test_far_above_what_one_caller_may_have_open_a_profile_gets_no_more_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sign_in, "MAX_OPEN_PER_PROFILE", 3)
    address, start = random_address(), now()
    for client in "abc":
        sign_in.issue_challenge(profile_address=address, client=client, now=start)

    with pytest.raises(TooManyRequests) as refused:
        sign_in.issue_challenge(profile_address=address, client="d", now=start)

    assert refused.value.retry_after == 60
    assert SignInChallenge.objects.count() == 3
    sign_in.issue_challenge(profile_address=random_address(), client="d", now=start)
    sign_in.issue_challenge(profile_address=address, client="d", now=start + timedelta(minutes=5))


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
