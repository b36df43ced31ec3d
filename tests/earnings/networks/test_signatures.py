"""Every network's signature is checked over all that it covers."""

import secrets
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from devstack.ad_networks.signing import KEY_ID, WITHOUT_REVERSALS
from earnings.models import PostbackKind
from earnings.networks import ADAPTERS
from earnings.networks.base import PostbackPostponed, PostbackRefused, RawRequest, check_freshness, is_weak
from tests.earnings.ad_networks import NOW, SLUGS, new_reward, new_secret, parse, request_of

WITH_SECRET = [slug for slug in SLUGS if ADAPTERS[slug].needs_secret]
WITH_QUERY = [slug for slug in SLUGS if slug != "visit-link"]


@pytest.mark.parametrize("slug", SLUGS)
def test_a_signed_reward_is_parsed_into_the_same_event(slug: str) -> None:
    reward, secret = new_reward(), new_secret(slug)

    event = parse(slug, request_of(slug, reward, secret), secret)

    assert event.kind == PostbackKind.CREDIT
    assert (event.external_id, event.original_id) == (reward.external_id, reward.external_id)
    assert (event.user_ref, event.amount) == (reward.user, Decimal(reward.amount))
    check_freshness(ADAPTERS[slug], event, now=NOW)


@pytest.mark.parametrize("slug", [slug for slug in SLUGS if slug not in WITHOUT_REVERSALS])
def test_a_reversal_names_the_credit_that_it_takes_back(slug: str) -> None:
    reward, secret = new_reward(is_reversal=True), new_secret(slug)

    event = parse(slug, request_of(slug, reward, secret), secret)

    assert (event.kind, event.original_id, event.user_ref) == (
        PostbackKind.REVERSAL,
        reward.external_id,
        reward.user,
    )


@pytest.mark.parametrize("slug", WITH_SECRET)
def test_both_live_secrets_are_accepted_and_no_other(slug: str) -> None:
    reward, old, new = new_reward(), secrets.token_hex(16), secrets.token_hex(16)

    for signed_with in (old, new):
        assert parse(slug, request_of(slug, reward, signed_with), new, old).external_id == reward.external_id
    with pytest.raises(PostbackRefused, match="bad signature"):
        parse(slug, request_of(slug, reward, old), new)


@pytest.mark.parametrize("slug", WITH_SECRET)
def test_without_a_secret_every_postback_is_postponed(slug: str) -> None:
    request = request_of(slug, new_reward(), "")

    with pytest.raises(PostbackPostponed, match="no secret"):
        parse(slug, request)


@pytest.mark.parametrize("slug", WITH_QUERY)
def test_a_repeated_parameter_is_refused_at_either_end(slug: str) -> None:
    secret = new_secret(slug)
    request = request_of(slug, new_reward(), secret)
    names = [pair.split(b"=")[0] for pair in request.query.split(b"&")]

    for name in names:
        for query in (b"%s=1&" % name + request.query, request.query + b"&%s=1" % name):
            with pytest.raises(PostbackRefused):
                parse(slug, replace(request, query=query), secret)


@pytest.mark.parametrize("slug", SLUGS)
def test_no_byte_of_a_covered_field_can_be_changed(slug: str) -> None:
    """Every byte is changed in turn; a change that is still accepted leaves all covered fields as they are."""
    secret = new_secret(slug)
    request = request_of(slug, new_reward(), secret)
    first = parse(slug, request, secret)
    covers = ADAPTERS[slug].covers
    signed_values = {"external_id": first.external_id, "user": first.user_ref, "amount": first.amount}

    for changed in _with_each_byte_changed(request):
        try:
            event = parse(slug, changed, secret)
        except PostbackRefused:
            continue
        except PostbackPostponed:
            # Another key's id: the signature is not even looked at.
            assert slug == "admob"
            continue
        values = {"external_id": event.external_id, "user": event.user_ref, "amount": event.amount}
        assert {name: values[name] for name in covers & values.keys()} == {
            name: signed_values[name] for name in covers & signed_values.keys()
        }


def _with_each_byte_changed(request: RawRequest) -> list[RawRequest]:
    def changed(text: bytes) -> list[bytes]:
        return [
            text[:at] + (b"7" if text[at : at + 1] != b"7" else b"8") + text[at + 1 :]
            for at in range(len(text))
        ]

    if not request.query:
        return [replace(request, path_token=token.decode()) for token in changed(request.path_token.encode())]
    return [replace(request, query=query) for query in changed(request.query)]


@pytest.mark.parametrize("slug", ["adgem", "bitlabs", "theoremreach"])
def test_a_signature_over_another_address_is_refused(slug: str) -> None:
    secret = new_secret(slug)
    request = request_of(slug, new_reward(), secret)

    with pytest.raises(PostbackRefused, match="bad signature"):
        parse(slug, replace(request, url=request.url.replace("testserver", "elsewhere")), secret)


@pytest.mark.parametrize(
    ("slug", "max_age"), [("admob", timedelta(hours=1)), ("levelplay", timedelta(days=9))]
)
def test_a_signed_time_that_is_too_old_or_ahead_is_stale(slug: str, max_age: timedelta) -> None:
    secret, adapter = new_secret(slug), ADAPTERS[slug]
    event = parse(slug, request_of(slug, new_reward(), secret), secret)

    for now in (NOW - max_age, NOW + max_age):
        check_freshness(adapter, event, now=now)
    for now in (NOW - max_age - timedelta(seconds=1), NOW + max_age + timedelta(seconds=1)):
        with pytest.raises(PostbackRefused, match="stale"):
            check_freshness(adapter, event, now=now)


def test_a_visit_link_expires_to_the_second() -> None:
    secret = new_secret("visit-link")
    event = parse("visit-link", request_of("visit-link", new_reward(), secret), secret)
    ends = NOW + timedelta(hours=1)

    check_freshness(ADAPTERS["visit-link"], event, now=ends - timedelta(microseconds=1))
    with pytest.raises(PostbackRefused, match="expired"):
        check_freshness(ADAPTERS["visit-link"], event, now=ends)


def test_only_networks_that_sign_too_little_are_weak() -> None:
    assert [slug for slug, adapter in ADAPTERS.items() if is_weak(adapter)] == ["cpx-research"]


def test_an_unknown_verifier_key_postpones_the_postback() -> None:
    request = request_of("admob", new_reward(), new_secret("admob"))
    other = replace(request, query=request.query.replace(KEY_ID.encode(), b"4"))

    with pytest.raises(PostbackPostponed, match="unknown verifier key"):
        parse("admob", other)


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize(
    "amount", ["NaN", "Infinity", "--5", "1,5", "0x10", "", "1_0", "1e", "9" * 24, "1e999999", "1" * 401]
)
def test_an_amount_that_is_not_a_number_or_overflows_is_refused(slug: str, amount: str) -> None:
    secret = new_secret(slug)

    with pytest.raises(PostbackRefused):
        parse(slug, request_of(slug, new_reward(amount=amount), secret), secret)


@pytest.mark.parametrize("slug", SLUGS)
def test_an_amount_of_zero_is_information(slug: str) -> None:
    secret = new_secret(slug)

    assert parse(slug, request_of(slug, new_reward(amount="0"), secret), secret).kind == PostbackKind.INFO
