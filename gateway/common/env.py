"""
Typed readers of environment variables.

Each reader raises `ImproperlyConfigured` with the variable's name, so that a process with a malformed environment stops
at its start. An empty variable counts as absent. No error quotes a value, since it may be a secret.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from limits import parse_many
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from gateway.common.processes import withheld

# Shorter secrets could be found by brute force.
MIN_SECRET_LENGTH = 32


def required(name: str) -> str:
    """Return the variable's text; an absent or empty variable stops the process."""
    value = os.environ.get(name, "")
    if not value:
        raise ImproperlyConfigured(f"Set the environment variable {name}.")
    return value


def optional(name: str, default: str = "") -> str:
    """Return the variable's text, or `default` if it is absent or empty."""
    return os.environ.get(name, "") or default


def secret(name: str, *, default: str | None = None) -> str:
    """
    Return a secret from `NAME`, or from the file that `NAME_FILE` names.

    The file form is for secrets mounted by an orchestrator. Setting both is an error. A secret that the process does
    not use (`GATEWAY_PROCESS`) is empty, and must not be given.
    """
    if name in withheld(optional("GATEWAY_PROCESS")):
        absent(name)
        return ""
    value, file_name = os.environ.get(name, ""), os.environ.get(f"{name}_FILE", "")
    if value and file_name:
        raise ImproperlyConfigured(f"Set only one of {name} and {name}_FILE.")
    if file_name:
        try:
            value = Path(file_name).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE names a file that cannot be read.") from error
    if not value and default is None:
        raise ImproperlyConfigured(f"Set the environment variable {name} or {name}_FILE.")
    return value or (default or "")


def secrets(name: str, *, default: str | None = None) -> list[str]:
    """Return a comma-separated list of secrets, which `secret` reads, without its empty items."""
    return _items(secret(name, default=default))


def absent(name: str) -> None:
    """Refuse a secret that this process does not use."""
    if os.environ.get(name, "") or os.environ.get(f"{name}_FILE", ""):
        raise ImproperlyConfigured(f"This process must not be given {name} or {name}_FILE.")


def flag(name: str, *, default: bool) -> bool:
    """Return a boolean spelled exactly `True` or `False`."""
    value = os.environ.get(name, "")
    if not value:
        return default
    if value not in {"True", "False"}:
        raise ImproperlyConfigured(f"{name} must be True or False.")
    return value == "True"


def integer(name: str, *, default: int | None = None, minimum: int = 0, maximum: int | None = None) -> int:
    """Return a decimal whole number that is at least `minimum` and at most `maximum`."""
    text = required(name) if default is None else optional(name, str(default))
    try:
        value = int(text)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a whole number.") from error
    if value < minimum:
        raise ImproperlyConfigured(f"{name} must be at least {minimum}.")
    if maximum is not None and value > maximum:
        raise ImproperlyConfigured(f"{name} must be at most {maximum}.")
    return value


def rate(name: str, default: str) -> str:
    """Return the text of one rate, such as `30/minute`."""
    text = optional(name, default)
    try:
        (_,) = parse_many(text)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a rate like 30/minute.") from error
    return text


def listing(name: str, *, default: tuple[str, ...] | None = None) -> list[str]:
    """Return the items of a comma-separated list, without empty ones."""
    return _items(required(name) if default is None else optional(name, ",".join(default)))


def url(name: str, *, default: str | None = None, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """Return an unchanged absolute URL of one of `schemes`; empty only if `default` is empty."""
    text = required(name) if default is None else optional(name, default)
    if text and not _is_url(text, schemes):
        raise ImproperlyConfigured(f"{name} must be an absolute URL ({', '.join(schemes)}).")
    return text


def base_url(name: str, *, default: str | None = None) -> str:
    """Return an http(s) URL to which paths are appended, without a trailing slash."""
    return url(name, default=default).rstrip("/")


def urls(name: str) -> list[str]:
    """Return a comma-separated list of http(s) URLs with at least one item."""
    items = listing(name)
    if not items or not all(_is_url(text, ("http", "https")) for text in items):
        raise ImproperlyConfigured(f"{name} must list absolute http(s) URLs.")
    return items


def database(name: str, *, default: str | None = None) -> dict[str, str]:
    """Return the parameters of a libpq connection string, which is a secret; none if it is empty."""
    try:
        parameters = conninfo_to_dict(secret(name, default=default))
    except ProgrammingError:
        # Without the cause, because its text quotes the secret.
        raise ImproperlyConfigured(f"{name} must be a libpq connection string.") from None
    return {parameter: str(value) for parameter, value in parameters.items()}


def choice(name: str, *, allowed: tuple[str, ...], default: str) -> str:
    """Return one of the `allowed` texts."""
    value = optional(name, default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} must be one of: {', '.join(allowed)}.")
    return value


def _is_url(text: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in schemes and bool(parts.netloc)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
