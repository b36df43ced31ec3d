"""An access token is accepted when we issued it for this service and it has not expired."""

import hmac
import secrets
from datetime import timedelta
from typing import Any

import jwt
import pytest
import time_machine
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.utils.timezone import now
from jwt import PyJWK
from jwt.algorithms import ECAlgorithm

from gateway.common import clock
from gateway.common.errors import NotAuthenticated
from tests.factories import random_address
from tests.users.forged_tokens import ODD_EXPIRIES, forged_token, raw_token
from tests.users.private_keys import ec_key, pem, rsa_key
from users import errors
from users.keys import public_key_set, signing_keys
from users.models import SignInSession, User
from users.tokens import AccessToken


def _session() -> SignInSession:
    user = User(pk=secrets.randbelow(10**9), profile_address=random_address())
    return SignInSession(user=user, controller_address=random_address())


def _issued() -> str:
    return str(AccessToken.for_session(_session(), now=now()))


def test_a_token_names_its_user_and_session_and_expires_after_its_lifetime(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AccessToken, "lifetime", timedelta(seconds=97))
    session, moment = _session(), now().replace(microsecond=0)

    token = AccessToken(str(AccessToken.for_session(session, now=moment)))

    assert (token.user_id, token.session_id) == (session.user_id, session.pk)
    assert token.profile_address == session.user.profile_address
    assert token["ctl"] == session.controller_address
    assert token.expires_at == moment + timedelta(seconds=97)


def test_anyone_can_verify_a_token_with_the_published_keys(settings: Any) -> None:
    session = _session()
    text = str(AccessToken.for_session(session, now=now()))

    header = jwt.get_unverified_header(text)
    (published,) = [key for key in public_key_set()["keys"] if key["kid"] == header["kid"]]
    claims = jwt.decode(
        text,
        PyJWK(published),
        algorithms=["ES256"],
        audience=settings.SIMPLE_JWT["AUDIENCE"],
        issuer=settings.SIMPLE_JWT["ISSUER"],
    )

    assert (header["alg"], header["typ"]) == ("ES256", "at+jwt")
    assert claims["sub"] == str(session.user_id)
    assert claims["sid"] == str(session.pk)


def test_a_new_key_in_front_signs_while_the_old_one_still_verifies(settings: Any) -> None:
    old, new = ec_key(), ec_key()
    settings.AUTH_SIGNING_KEYS = pem(old)
    before = _issued()
    settings.AUTH_SIGNING_KEYS = pem(new) + pem(old)
    after = _issued()

    assert AccessToken(before)
    assert AccessToken(after)
    assert jwt.get_unverified_header(after)["kid"] == signing_keys()[0].kid
    settings.AUTH_SIGNING_KEYS = pem(new)
    assert AccessToken(after)
    with pytest.raises(errors.AccessTokenKeyUnknown):
        AccessToken(before)


def test_a_forged_token_without_a_change_is_accepted() -> None:
    assert AccessToken(forged_token())


def _unsigned() -> str:
    return raw_token("none", lambda head: b"")


def _signed_with_the_public_key_as_a_secret() -> str:
    secret = (
        signing_keys()[0]
        .private_key.public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    return raw_token("HS256", lambda head: hmac.digest(secret, head, "sha256"))


def _carrying_its_own_key() -> str:
    other_key = ec_key()
    own_key = ECAlgorithm.to_jwk(other_key.public_key(), as_dict=True)
    return forged_token(key=other_key, header={"jwk": own_key, "kid": "mine"})


def _naming_where_to_fetch_its_key() -> str:
    return forged_token(key=ec_key(), header={"jku": "https://evil.example/jwks.json"})


def _tampered_with() -> str:
    head, _, signature = forged_token().split(".")
    other = forged_token().split(".")[1]
    return f"{head}.{other}.{signature}"


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (_unsigned, errors.AccessTokenAlgorithmRefused),
        (_signed_with_the_public_key_as_a_secret, errors.AccessTokenAlgorithmRefused),
        (lambda: forged_token(key=rsa_key(), algorithm="RS256"), errors.AccessTokenAlgorithmRefused),
        (
            lambda: forged_token(key=rsa_key(), algorithm="RS256", header={"kid": "theirs"}),
            errors.AccessTokenAlgorithmRefused,
        ),
        (lambda: forged_token(key=ec_key()), errors.AccessTokenSignatureInvalid),
        (_tampered_with, errors.AccessTokenSignatureInvalid),
        (_naming_where_to_fetch_its_key, errors.AccessTokenSignatureInvalid),
        (_carrying_its_own_key, errors.AccessTokenKeyUnknown),
        (lambda: forged_token(header={"kid": secrets.token_hex(8)}), errors.AccessTokenKeyUnknown),
        (lambda: forged_token(header={"kid": None}), errors.AccessTokenKeyUnknown),
        (lambda: forged_token(header={"crit": ["novel"], "novel": 1}), errors.AccessTokenMalformed),
        (lambda: forged_token(iss="https://elsewhere.example"), errors.AccessTokenIssuerRefused),
        (lambda: forged_token(aud="https://elsewhere.example"), errors.AccessTokenAudienceRefused),
        (lambda: forged_token(exp=int(now().timestamp()) - 1), errors.AccessTokenExpired),
        (lambda: forged_token(exp=str(int(now().timestamp()) + 300)), errors.AccessTokenMalformed),
        (lambda: forged_token(exp=int(now().timestamp() * 1000)), errors.AccessTokenMalformed),
        *((lambda odd=odd: forged_token(exp=odd), errors.AccessTokenMalformed) for odd in ODD_EXPIRIES),
        (lambda: forged_token(iat=float("inf")), errors.AccessTokenMalformed),
        (lambda: forged_token(nbf=float("inf")), errors.AccessTokenMalformed),
        (lambda: forged_token(token_type="refresh"), errors.AccessTokenKindRefused),
        (lambda: forged_token(without="token_type"), errors.AccessTokenKindRefused),
        (lambda: forged_token(header={"typ": "JWT"}), errors.AccessTokenKindRefused),
        (lambda: forged_token(sid="not a session"), errors.AccessTokenMalformed),
        (lambda: forged_token(sub="somebody"), errors.AccessTokenMalformed),
        (lambda: "a.b.c", errors.AccessTokenMalformed),
        (lambda: "Jabberwocky", errors.AccessTokenMalformed),
        *(
            (lambda claim=claim: forged_token(without=claim), errors.AccessTokenMalformed)
            for claim in ("exp", "iat", "jti", "sub", "sid", "address", "ctl", "iss", "aud")
        ),
    ],
)
def test_a_token_that_is_wrong_in_one_way_is_refused_by_that_name(
    make: Any, refusal: type[NotAuthenticated]
) -> None:
    with pytest.raises(refusal) as refused:
        AccessToken(make())
    assert type(refused.value) is refusal
    assert refused.value.status == 401


def test_a_token_is_valid_until_its_last_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AccessToken, "lifetime", timedelta(seconds=30))
    with time_machine.travel(now().replace(microsecond=0), tick=False) as own_clock:
        text = _issued()
        own_clock.shift(timedelta(seconds=29, milliseconds=999))
        assert AccessToken(text)

        own_clock.shift(timedelta(milliseconds=1))
        with pytest.raises(errors.AccessTokenExpired):
            AccessToken(text)


@pytest.mark.parametrize("seconds", [2, 60, 600])
def test_a_token_of_a_host_that_is_ahead_is_accepted_by_the_others(seconds: int) -> None:
    with time_machine.travel(now() + timedelta(seconds=seconds)):
        text = _issued()
    assert AccessToken(text)


def test_a_host_whose_clock_is_wrong_agrees_with_the_others_about_the_end_of_a_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, ahead = _issued(), timedelta(hours=1)
    with time_machine.travel(now() + ahead):
        with pytest.raises(errors.AccessTokenExpired):
            AccessToken(text)
        monkeypatch.setattr(clock._clock, "correction", -ahead)
        assert AccessToken(text)


def test_a_token_that_is_not_valid_yet_gets_the_code_that_clients_renew() -> None:
    with pytest.raises(errors.AccessTokenExpired):
        AccessToken(forged_token(nbf=int(now().timestamp()) + 3600))


def test_simplejwt_verifies_a_token_once_and_a_refused_one_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad, verified = _issued(), _tampered_with(), []
    verify = jwt.decode

    def verify_and_note(token: str, *args: Any, **options: Any) -> Any:
        verified.append(token)
        return verify(token, *args, **options)

    monkeypatch.setattr(jwt, "decode", verify_and_note)
    claims = [AccessToken(good).payload for _ in range(3)]
    for _ in range(2):
        with pytest.raises(errors.AccessTokenSignatureInvalid):
            AccessToken(bad)

    assert verified == [good, bad, bad]
    assert claims[0] == claims[1] == claims[2]


def test_mutating_a_decoded_token_does_not_change_later_reads() -> None:
    text, session = forged_token(), _session()
    token = AccessToken(text)
    token["sub"], token["sid"] = str(session.user_id), str(session.pk)

    assert AccessToken(text).user_id == 1
    assert AccessToken(text).session_id != session.pk
