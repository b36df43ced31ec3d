"""A token of the configured external issuer identifies a profile; a token of any other issuer is refused."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from credits.models import CreditAccount
from gateway.common.errors import NotAuthenticated
from tests.factories import random_address
from tests.fakes.profiles import Profile
from tests.users.auth_client import authenticate, signed_in
from tests.users.external_issuer import ExternalIssuer
from tests.users.forged_tokens import ODD_EXPIRIES
from tests.users.private_keys import ec_key
from users import errors
from users.api.authentication import VerifiedTokenAuthentication
from users.models import IssuerKeySet, SignInSession, User
from users.tokens import TokenHolder

pytestmark = pytest.mark.django_db


@pytest.fixture
def issuer(settings: Any) -> ExternalIssuer:
    """An issuer that is configured and whose keys were fetched."""
    external = ExternalIssuer()
    settings.AUTH_EXTERNAL_JWKS_URL = "https://id.example/jwks.json"
    settings.AUTH_EXTERNAL_ISSUER, settings.AUTH_EXTERNAL_AUDIENCE = external.name, external.audience
    IssuerKeySet.objects.create(url=settings.AUTH_EXTERNAL_JWKS_URL, keys=external.keys, fetched_at=now())
    return external


@pytest.mark.parametrize(("algorithm", "kid"), [("ES256", "ec"), ("RS256", "rsa")])
def test_the_first_token_makes_the_user_and_its_account(
    issuer: ExternalIssuer, algorithm: str, kid: str
) -> None:
    address = random_address()
    token = issuer.token(algorithm=algorithm, kid=kid, address=address.lower())

    user, verified = authenticate(token)
    again, _ = authenticate(token)

    assert user.pk == again.pk == User.objects.get(profile_address=address).pk
    assert not user.has_usable_password()
    assert CreditAccount.objects.get().user_id == user.pk
    assert (verified.issuer, verified.profile_address, verified.session) == (issuer.name, address, None)
    assert not SignInSession.objects.exists()


def test_a_known_user_costs_two_queries(issuer: ExternalIssuer) -> None:
    token = issuer.token(address=random_address())
    authenticate(token)

    with CaptureQueriesContext(connection) as queries:
        authenticate(token)
    assert len(queries) == 2


def test_a_late_session_read_returns_the_user_and_no_session(issuer: ExternalIssuer) -> None:
    address = random_address()

    request = APIRequestFactory().get("/", HTTP_AUTHORIZATION=f"Bearer {issuer.token(address=address)}")
    authenticated: Any = VerifiedTokenAuthentication().authenticate(Request(request))

    assert authenticated[0] == TokenHolder(User.objects.get().pk, address, None)


def test_the_address_claim_may_have_another_name(issuer: ExternalIssuer, settings: Any) -> None:
    settings.AUTH_EXTERNAL_ADDRESS_CLAIM = "wallet"
    address = random_address()

    user, _ = authenticate(issuer.token(wallet=address))

    assert user.profile_address == address


def test_our_own_tokens_are_accepted_too(issuer: ExternalIssuer, profile: Profile) -> None:
    pair = signed_in(profile)

    user, _ = authenticate(pair.access)

    assert user.profile_address == profile.profile_address


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"key": ec_key()}, errors.AccessTokenSignatureInvalid),
        ({"kid": "another"}, errors.AccessTokenKeyUnknown),
        ({"kid": "rsa"}, errors.AccessTokenAlgorithmRefused),
        ({"algorithm": "HS256", "key": "k" * 32}, errors.AccessTokenAlgorithmRefused),
        ({"algorithm": "RS384", "kid": "rsa"}, errors.AccessTokenAlgorithmRefused),
        ({"aud": "another service"}, errors.AccessTokenAudienceRefused),
        ({"exp": int((now() - timedelta(seconds=1)).timestamp())}, errors.AccessTokenExpired),
        ({"exp": int((now() + timedelta(days=1)).timestamp() * 1000)}, errors.AccessTokenMalformed),
        ({"exp": str(int((now() + timedelta(days=1)).timestamp()))}, errors.AccessTokenMalformed),
        *(({"exp": odd}, errors.AccessTokenMalformed) for odd in ODD_EXPIRIES),
        ({"address": "vitalik.eth"}, errors.AccessTokenMalformed),
        ({"address": None}, errors.AccessTokenMalformed),
        ({"address": ["0x" + "11" * 20]}, errors.AccessTokenMalformed),
    ],
)
def test_a_token_that_is_wrong_in_one_way_makes_no_user(
    issuer: ExternalIssuer, changes: dict[str, Any], refusal: type[NotAuthenticated]
) -> None:
    token = issuer.token(**{"address": random_address(), **changes})

    with pytest.raises(refusal):
        authenticate(token)
    assert not User.objects.exists()


def test_a_token_of_another_issuer_is_refused(issuer: ExternalIssuer) -> None:
    token = issuer.token(address=random_address(), iss="https://elsewhere.example/")

    with pytest.raises(NotAuthenticated):
        authenticate(token)
    assert not User.objects.exists()


def test_without_a_configured_issuer_its_tokens_are_refused(issuer: ExternalIssuer, settings: Any) -> None:
    settings.AUTH_EXTERNAL_JWKS_URL = ""

    # It is read as one of ours would be.
    with pytest.raises(errors.AccessTokenKindRefused):
        authenticate(issuer.token(address=random_address()))
    assert not User.objects.exists()


def test_before_the_keys_are_fetched_every_token_is_refused(issuer: ExternalIssuer) -> None:
    IssuerKeySet.objects.all().delete()

    with pytest.raises(errors.AccessTokenKeyUnknown):
        authenticate(issuer.token(address=random_address()))


def test_a_closed_account_stays_closed_for_the_issuer_too(issuer: ExternalIssuer) -> None:
    token = issuer.token(address=random_address())
    authenticate(token)
    User.objects.update(is_active=False)

    with pytest.raises(errors.AccountInactive):
        authenticate(token)
