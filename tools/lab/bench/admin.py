"""
`python -m lab bench --admin`: response times of the admin's pages on a large database.

Runs as a separate process with the service's settings in its environment. It writes a large history and opens the
admin's pages with Django's test client.
"""

import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command

from devstack.console import echo
from devstack.django_process import run_django
from devstack.files import read_json, write_json
from devstack.preparation import short_lived_stack

_PEOPLE, _REPEATS = 10_000, 5


def bench_admin(path: Path) -> int:
    """Fill the database of a temporary stack, open the pages, print, and write the figures to `path`."""
    pages = _measured_apart()
    width = max(len(page["name"]) for page in pages)
    echo("Pages of the admin: median milliseconds, statements")
    for page in pages:
        echo(f"  {page['name']:{width}} {page['median_ms']:9.1f} {page['queries']:5}")
    write_json(path, {"pages": pages})
    echo(f"Written to {path}")
    return 0


def _measured_apart() -> list[dict[str, Any]]:
    settings = {"DATABASE_STATEMENT_TIMEOUT_SECONDS": "0", "LOG_LEVEL": "ERROR"}
    # Only the owner of the tables may disable triggers and run ANALYZE.
    with short_lived_stack(settings, owns_tables=True) as (folder, environment):
        echo(f"Writing 100 entries and 20 relay transactions of {_PEOPLE:,} people, then opening the pages …")
        result = folder / "pages.json"
        arguments = ("-m", "lab.bench.admin", str(result), str(_PEOPLE))
        run_django(folder / "pages.log", environment, *arguments)
        measured = read_json(result)
        echo(f"Written in {measured['filled_seconds']:.0f} s")
        return list(measured["pages"])


@dataclass(frozen=True)
class Page:
    """A page: its median time in milliseconds, and its number of statements."""

    name: str
    address: str
    median_ms: float
    queries: int


def measure() -> list[Page]:
    """Open each page several times; the first time is not counted."""
    browser = _browser()
    return [_measured(browser, name, address) for name, address in _pages()]


def _measured(browser: Any, name: str, address: str) -> Page:
    from django.db import connection

    statements: list[str] = []

    def count(execute: Any, sql: str, *rest: Any) -> Any:
        statements.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(count):
        _open(browser, address)
    times = []
    for _ in range(_REPEATS):
        started = time.perf_counter()
        _open(browser, address)
        times.append((time.perf_counter() - started) * 1e3)
    return Page(name, address, round(statistics.median(times), 1), len(statements))


def _open(browser: Any, address: str) -> None:
    response = browser.get(address)
    if response.status_code not in {200, 302}:
        raise RuntimeError(f"{address} answered {response.status_code}")
    if response.status_code == 302 and not address.startswith("/admin/search/"):
        raise RuntimeError(f"{address} leads to {response['location']}")


def _browser() -> Any:
    from django.test import Client
    from django_otp import DEVICE_ID_SESSION_KEY

    from users.models import Phone, User

    person = User.objects.create_superuser("bench")
    browser = Client(HTTP_HOST="127.0.0.1")
    browser.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    session = browser.session
    session[DEVICE_ID_SESSION_KEY] = Phone.objects.create(user=person).persistent_id
    session.save()
    return browser


def _pages() -> Iterator[tuple[str, str]]:
    from credits.models import CreditAccount
    from earnings.models import Postback
    from relay.models import RelayTransaction

    call = RelayTransaction.objects.order_by("-pk")[777]
    postback = Postback.objects.order_by("-pk")[777]
    heavy = CreditAccount.objects.order_by("pk")[0].person
    address = str(call.profile_address)
    parts = {"whole": address.lower(), "beginning": address[:12], "end": f"…{address[-8:]}"}
    entries, calls = "/admin/credits/creditentry/", "/admin/relay/relaytransaction/"
    yield "front page", "/admin/"
    yield "reconciliation", "/admin/books/"
    yield "a person", f"/admin/users/user/{call.user_id}/change/"
    yield "the person with the most entries", f"/admin/users/user/{heavy.pk}/change/"
    yield "a relay transaction", f"{calls}{call.pk}/change/"
    for name, term in {
        **{f"an address, {part}": text for part, text in parts.items()},
        "a hash": call.transaction_hash,
        "a request id": call.request_id,
        "an event's id": postback.external_id,
        "nothing known": "nothing-known",
    }.items():
        yield f"search everywhere: {name}", f"/admin/search/?q={term}"
    for part, text in parts.items():
        yield f"people: address, {part}", f"/admin/users/user/?q={text}"
        yield f"ledger: address, {part}", f"{entries}?q={text}"
        yield f"relay transactions: address, {part}", f"{calls}?q={text}"
    yield "ledger: the most entries", f"{entries}?q={heavy.profile_address}"
    yield "ledger: a key", f"{entries}?q=bench:17:3"
    yield "ledger: surveys", f"{entries}?source__exact=SURVEYS"
    yield "ledger: a source without rows", f"{entries}?source__exact=STAFF_ADJUSTMENT"
    yield "ledger: far back", f"{entries}?p=150"
    yield "relay transactions: failed", f"{calls}?status__exact=Failed"
    yield "relay transactions: a state without rows", f"{calls}?status__exact=Pending"
    yield "relay transactions: a hash", f"{calls}?q={call.transaction_hash}"
    yield "relay transactions: a request id", f"{calls}?q={call.request_id}"
    yield from _lists()


def _lists() -> Iterator[tuple[str, str]]:
    from django.contrib import admin
    from django.urls import reverse

    for model in admin.site._registry:
        meta = model._meta
        yield (
            f"list: {meta.verbose_name_plural}",
            reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist"),
        )


def fill_and_measure() -> None:
    """Create the tables, write the history, measure."""
    django.setup()
    call_command("migrate", verbosity=0)
    from lab.bench.admin_data import fill

    started = time.perf_counter()
    fill(int(sys.argv[2]))
    filled = time.perf_counter() - started
    write_json(Path(sys.argv[1]), {"filled_seconds": filled, "pages": [asdict(page) for page in measure()]})


if __name__ == "__main__":
    fill_and_measure()
