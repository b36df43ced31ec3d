"""System checks of sign-in: configuration errors that would otherwise show only at the first sign-in."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured

from users.keys import signing_keys

_EXTERNAL = ("AUTH_EXTERNAL_JWKS_URL", "AUTH_EXTERNAL_ISSUER", "AUTH_EXTERNAL_AUDIENCE")


@register("users")
def signing_keys_are_usable(**_: Any) -> list[CheckMessage]:
    """Refuse signing keys that are missing, unreadable, duplicate, or not EC P-256 keys."""
    if "AUTH_SIGNING_KEYS" in settings.WITHHELD_SECRETS:
        return []
    try:
        signing_keys()
    except ImproperlyConfigured as error:
        hint = "Make one with: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"
        return [Error(str(error), hint=hint, id="users.E001")]
    return []


@register("users")
def external_issuer_is_whole(**_: Any) -> list[CheckMessage]:
    """Refuse an external issuer that is configured in part, without TLS, or with a shared secret."""
    missing = [name for name in _EXTERNAL if not getattr(settings, name)]
    if len(missing) == len(_EXTERNAL):
        return []
    messages: list[CheckMessage] = []
    if missing:
        messages.append(Error(f"Set {', '.join(missing)} too, or none of the three.", id="users.E003"))
    if settings.SIMPLE_JWT["ISSUER"] == settings.AUTH_EXTERNAL_ISSUER:
        messages.append(Error("AUTH_EXTERNAL_ISSUER must not be our own issuer.", id="users.E003"))
    if urlsplit(settings.AUTH_EXTERNAL_JWKS_URL).scheme == "http":
        messages.append(Warning("AUTH_EXTERNAL_JWKS_URL is fetched without TLS.", id="users.W002"))
    return messages


@register("users")
def domain_is_the_public_host(**_: Any) -> list[CheckMessage]:
    """Warn if the domain in the sign-in message differs from that of the service."""
    host = urlsplit(settings.PUBLIC_URL).netloc
    if host == settings.AUTH_DOMAIN:
        return []
    return [
        Warning(
            f"AUTH_DOMAIN is {settings.AUTH_DOMAIN}, but PUBLIC_URL is on {host}.",
            hint="Wallets show a warning when a message names another domain than the page.",
            id="users.W001",
        )
    ]


@register("users", deploy=True)
def https_is_recognised(**_: Any) -> list[CheckMessage]:
    """Warn if every request would look like plain http, so that all would be refused."""
    if not settings.SECURE_SSL_REDIRECT or settings.TRUSTED_PROXY_COUNT:
        return []
    return [
        Warning(
            "PUBLIC_URL is https, but TRUSTED_PROXY_COUNT is 0, so X-Forwarded-Proto is ignored.",
            hint="Set TRUSTED_PROXY_COUNT to the number of proxies in front of the service, which serves no TLS.",
            id="users.W003",
        )
    ]
