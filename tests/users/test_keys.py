"""Keys are read from one text: the first signs, all verify, anything else is refused."""

import hashlib
import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import PrivateFormat
from django.core.exceptions import ImproperlyConfigured
from jwt.algorithms import ECAlgorithm

from tests.users.private_keys import ec_key, pem, rsa_key
from users.keys import public_key_set, signing_keys


def test_keys_are_listed_in_order_with_thumbprints_and_without_private_parts(settings: Any) -> None:
    first, second = ec_key(), ec_key()
    settings.AUTH_SIGNING_KEYS = pem(first) + pem(second)

    published = public_key_set()["keys"]

    assert [key.private_key.private_numbers() for key in signing_keys()] == [
        first.private_numbers(),
        second.private_numbers(),
    ]
    assert [key["kid"] for key in published] == [key.kid for key in signing_keys()]
    for key in published:
        assert set(key) == {"kty", "crv", "x", "y", "kid", "use", "alg"}
        assert (key["kty"], key["crv"], key["use"], key["alg"]) == ("EC", "P-256", "sig", "ES256")


def test_the_key_id_is_the_rfc_7638_thumbprint(settings: Any) -> None:
    private = ec_key()
    settings.AUTH_SIGNING_KEYS = pem(private)
    jwk = json.loads(ECAlgorithm.to_jwk(private.public_key()))
    text = f'{{"crv":"P-256","kty":"EC","x":"{jwk["x"]}","y":"{jwk["y"]}"}}'

    expected = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    assert signing_keys()[0].kid == expected


def test_keys_of_openssl_and_keys_on_one_line_are_read(settings: Any) -> None:
    first, second = ec_key(), ec_key()
    parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    settings.AUTH_SIGNING_KEYS = (
        parameters + pem(first, PrivateFormat.TraditionalOpenSSL) + pem(second).replace("\n", "\\n")
    )

    assert len(signing_keys()) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no PEM private key"),
        ("secret", "no PEM private key"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "unreadable key"),
        (pem(rsa_key()), "P-256"),
        (pem(ec_key(ec.SECP384R1())), "P-256"),
        (pem(ec_key()) * 2, "twice"),
    ],
)
def test_an_unusable_key_is_refused(settings: Any, text: str, said: str) -> None:
    settings.AUTH_SIGNING_KEYS = text

    with pytest.raises(ImproperlyConfigured, match=said):
        signing_keys()
