"""
Typed readers of environment variables.

Each reader raises `ImproperlyConfigured` with the variable's name. The settings collect the errors of all variables
(`collect`, `finish`), so that a process with an invalid environment stops at its start and names every error. An empty
variable counts as absent. No error quotes a value, since it may be a secret.
"""

import difflib
import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from limits import parse_many
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from gateway.processes import withheld

# Shorter secrets could be found by brute force.
MIN_SECRET_LENGTH = 32
# How similar an unknown variable must be to a setting that is not set, to count as a spelling mistake.
_SIMILAR = 0.85
_HOST = re.compile(r"\*|\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\]", re.IGNORECASE)

# Former names of settings.
FORMER = {
    "ADJUSTMENT_APPROVAL_LIMIT": "APPROVAL_CREDITS_PER_CLERK",
    "AUTH_NONCE_RATE": "AUTH_RATE",
    "AUTH_VERIFY_RATE": "AUTH_RATE",
    "CEILING_NETWORK_RATE": "CEILING_RATE",
    "CEILING_PAYOUT_RATE": "CEILING_RATE",
    "DATABASE_PREPARED_STATEMENTS": "DATABASE_POOLING",
    "RELAY_DEAD_ENDS_PER_HOUR": "RELAY_CANCELLED_CALLS_PER_HOUR",
}
# Some libraries send their requests through these proxies, and others do not.
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
# Kubernetes describes each service of a namespace in such variables.
_OF_KUBERNETES = re.compile(r"\w+_(SERVICE_HOST|SERVICE_PORT\w*|PORT(_\w+)?)")

_NONE: Mapping[str, str] = {}

_Options = ParamSpec("_Options")
_Value = TypeVar("_Value")
_Reader = Callable[Concatenate[str, _Options], _Value]


@dataclass
class _Collection:
    """The variables that were read, and the first error of each."""

    is_on: bool = False
    names: set[str] = field(default_factory=set)
    errors: dict[str, str] = field(default_factory=dict)


_collection = _Collection()


def collect() -> None:
    """Record errors instead of raising them, until `finish`."""
    vars(_collection).update(vars(_Collection(is_on=True)))


def finish() -> None:
    """
    Exit if errors were recorded, with one line for each on standard error and without a traceback.

    A variable that is not read counts as an error if its name is almost that of a setting that is not set.
    """
    _collection.is_on = False
    errors = _collection.errors | _misspelt()
    if errors:
        number = "1 setting is" if len(errors) == 1 else f"{len(errors)} settings are"
        first = f"This process cannot start, because {number} wrong. docs/configuration.md explains every setting."
        raise SystemExit("\n- ".join([first, *errors.values()]))


def ignore_proxies() -> list[str]:
    """Remove the variables of proxies, so that all clients of this process connect directly; return their names."""
    names = [name for name in os.environ if name.lower() in _PROXIES]
    for name in names:
        del os.environ[name]
    return sorted(names)


def unread(constants: Container[str]) -> list[str]:
    """Return the variables that look like settings, as constants or by their first word, but were not read."""
    words = Counter(name.partition("_")[0] for name in _collection.names)
    # The signer has settings of its own.
    ours = {word for word, number in words.items() if number > 1} - {"SIGNER"}
    return [
        given
        for name, given in sorted(_given().items())
        if name not in _collection.names
        and (name in constants or name in FORMER or name.partition("_")[0] in ours)
        and not _OF_KUBERNETES.fullmatch(name)
    ]


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Record an error of this variable that is raised inside, if errors are being collected."""
    try:
        yield
    except ImproperlyConfigured as error:
        _record(name, error)


def _record(name: str, error: ImproperlyConfigured) -> None:
    if not _collection.is_on:
        raise error
    _collection.errors.setdefault(name, str(error))


def _given() -> dict[str, str]:
    return {name.removesuffix("_FILE"): name for name, value in os.environ.items() if value}


def _misspelt() -> dict[str, str]:
    """Return an error for each setting that is not set although a variable with its former or almost its name is."""
    given = _given()
    unset = _collection.names - given.keys()
    errors = {}
    for name in given.keys() - _collection.names:
        former = {FORMER.get(name, "")} & unset
        for right in former or difflib.get_close_matches(name, unset, n=1, cutoff=_SIMILAR):
            errors[right] = f"{given[name]} is not a setting; did you mean {right}?"
    return errors


def _collecting(instead: _Value) -> Callable[[_Reader[_Options, _Value]], _Reader[_Options, _Value]]:
    """Decorate a reader to return its default, or `instead`, for a variable whose error was recorded."""

    def decorate(reader: _Reader[_Options, _Value]) -> _Reader[_Options, _Value]:
        @functools.wraps(reader)
        def read(name: str, /, *args: _Options.args, **options: _Options.kwargs) -> _Value:
            _collection.names.add(name)
            try:
                return reader(name, *args, **options)
            except ImproperlyConfigured as error:
                _record(name, error)
            default = options.get("default")
            return default if isinstance(default, type(instead)) else instead

        return read

    return decorate


@_collecting("")
def required(name: str) -> str:
    """Return the variable's text; an absent or empty variable stops the process."""
    value = os.environ.get(name, "")
    if not value:
        raise ImproperlyConfigured(f"Set the environment variable {name}.")
    return value


@_collecting("")
def optional(name: str, default: str = "") -> str:
    """Return the variable's text, or `default` if it is absent or empty."""
    return os.environ.get(name, "") or default


@_collecting("")
def secret(
    name: str, *, default: str | None = None, minimum: int = 0, other_than: Mapping[str, str] = _NONE
) -> str:
    """
    Return a secret of at least `minimum` characters from `NAME`, or from the file that `NAME_FILE` names.

    The file form is for secrets mounted by an orchestrator. Setting both is an error. A secret that the process
    (`GATEWAY_PROCESS`) does not use is empty, and must not be set. The secret must differ from those in `other_than`,
    which have other purposes.
    """
    if name in withheld(optional("GATEWAY_PROCESS")):
        absent(name)
        return ""
    value, file_name = os.environ.get(name, ""), os.environ.get(f"{name}_FILE", "")
    if value and file_name:
        raise ImproperlyConfigured(f"Set only one of {name} and {name}_FILE.")
    if file_name:
        try:
            # Some editors put a byte order mark in front.
            value = Path(file_name).read_text(encoding="utf-8-sig").strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE names a file that cannot be read.") from error
        if value[:1] in {"'", '"'}:
            raise ImproperlyConfigured(f"{name}_FILE names a file whose text is in quotes; remove them.")
    if not value and default is None:
        raise ImproperlyConfigured(f"Set the environment variable {name} or {name}_FILE.")
    if value:
        _check_secret(name, value, minimum, other_than)
    return value or (default or "")


@_collecting(list[str]())
def secrets(
    name: str, *, default: str | None = None, minimum: int = 0, other_than: Mapping[str, str] = _NONE
) -> list[str]:
    """Return a comma-separated list of secrets, which `secret` reads, without its empty items."""
    text = secret(name, default=default)
    items = _items(text)
    if text and not items:
        raise ImproperlyConfigured(f"{name} lists no secret.")
    for item in items:
        _check_secret(name, item, minimum, other_than)
    return items


def _check_secret(name: str, text: str, minimum: int, other_than: Mapping[str, str]) -> None:
    if len(text) < minimum:
        raise ImproperlyConfigured(f"{name} needs at least {minimum} characters.")
    for other, taken in other_than.items():
        if text == taken:
            raise ImproperlyConfigured(f"{name} must not be {other}.")


@_collecting(None)
def absent(name: str) -> None:
    """Refuse a secret that this process does not use."""
    if os.environ.get(name, "") or os.environ.get(f"{name}_FILE", ""):
        raise ImproperlyConfigured(f"This process must not be given {name} or {name}_FILE.")


@_collecting(False)
def flag(name: str, *, default: bool) -> bool:
    """Return a boolean spelled exactly `True` or `False`."""
    value = os.environ.get(name, "")
    if not value:
        return default
    if value not in {"True", "False"}:
        raise ImproperlyConfigured(f"{name} must be True or False.")
    return value == "True"


@_collecting(1)
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


@_collecting(1.0)
def seconds(name: str, *, default: str = "") -> float:
    """Return a positive number of seconds, which may be a fraction."""
    text = optional(name, default) if default else required(name)
    try:
        value = float(text)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a number of seconds.") from error
    if not 0 < value < float("inf"):
        raise ImproperlyConfigured(f"{name} must be a number of seconds.")
    return value


@_collecting("")
def rate(name: str, default: str) -> str:
    """Return the text of one rate, such as `30/minute`."""
    text = optional(name, default)
    try:
        (_,) = parse_many(text)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be a rate like 30/minute.") from error
    return text


@_collecting(list[str]())
def listing(name: str, *, default: tuple[str, ...] | None = None) -> list[str]:
    """Return the items of a comma-separated list, without empty ones."""
    return _items(required(name) if default is None else optional(name, ",".join(default)))


@_collecting(list[str]())
def hosts(name: str) -> list[str]:
    """Return the host names of a comma-separated list, in the form of Django's ALLOWED_HOSTS."""
    items = listing(name)
    if not all(_HOST.fullmatch(item) for item in items):
        raise ImproperlyConfigured(f"{name} must list host names only, without https://, port or path.")
    return items


@_collecting("")
def host(name: str) -> str:
    """Return a host name, with its port if it has one."""
    text = required(name)
    if not _HOST.fullmatch(re.sub(r":\d+$", "", text)):
        raise ImproperlyConfigured(
            f"{name} must be a host name, with its port if any, without https:// or path."
        )
    return text


@_collecting("")
def url(name: str, *, default: str | None = None, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """Return an unchanged absolute URL of one of `schemes`; empty only if `default` is empty."""
    text = required(name) if default is None else optional(name, default)
    if text and not _is_url(text, schemes):
        raise ImproperlyConfigured(f"{name} must be an absolute URL ({', '.join(schemes)}).")
    return text


@_collecting("")
def base_url(name: str, *, default: str | None = None) -> str:
    """Return an http(s) URL to which paths are appended, without a trailing slash."""
    return url(name, default=default).rstrip("/")


@_collecting(["http://invalid"])
def urls(name: str) -> list[str]:
    """Return a comma-separated list of http(s) URLs with at least one item."""
    items = listing(name)
    if not items or not all(_is_url(text, ("http", "https")) for text in items):
        raise ImproperlyConfigured(f"{name} must list absolute http(s) URLs.")
    return items


@_collecting(dict[str, str]())
def database(name: str, *, default: str | None = None) -> dict[str, str]:
    """Return the parameters of a libpq connection string, which is a secret; none if it is empty."""
    try:
        parameters = conninfo_to_dict(secret(name, default=default))
    except ProgrammingError:
        # Raised without its cause, whose text quotes the secret.
        raise ImproperlyConfigured(f"{name} must be a libpq connection string.") from None
    return {parameter: str(value) for parameter, value in parameters.items()}


@_collecting("")
def parsed(name: str, default: str, *, parse: Callable[[str], str]) -> str:
    """Return the text as parsed by `parse`; the text of its ValueError follows the variable's name in the error."""
    try:
        return parse(optional(name, default))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} {error}") from None


@_collecting("")
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
