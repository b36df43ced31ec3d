"""System checks of the credits: what would only show when a copy of the database is read."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from gateway.common.env import SECRET_LETTERS


@register("credits")
def keys_of_network_secrets_are_strong(**_: Any) -> list[CheckMessage]:
    """Refuse keys that are missing, short, or do another job as well."""
    found = settings.AD_NETWORK_SECRET_KEYS
    others = {settings.SECRET_KEY, settings.AUTH_REFRESH_SECRET}
    if found and all(len(text) >= SECRET_LETTERS and text not in others for text in found):
        return []
    message = (
        f"AD_NETWORK_SECRET_KEYS needs keys of {SECRET_LETTERS} characters, "
        "and none that is SECRET_KEY or AUTH_REFRESH_SECRET."
    )
    return [Error(message, hint="Make one with: openssl rand -base64 48", id="earnings.E001")]
