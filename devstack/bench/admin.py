"""`python -m devstack bench --admin`: how long staff wait on a service with a past."""

import tempfile
from pathlib import Path
from typing import Any

from devstack.console import say
from devstack.django_process import run_django
from devstack.environment import django_environment, keep_secrets, owner_environment, process_environment
from devstack.files import read_json, write_json
from devstack.services.server import free_port
from devstack.services.stack import start_services


def bench_admin(path: Path, *, people: int = 10_000) -> int:
    """Fill a service of its own, open the pages, print, and write the figures to `path`."""
    pages = _measured(people)
    width = max(len(page["name"]) for page in pages)
    say("Pages of the admin: median milliseconds, statements")
    for page in pages:
        say(f"  {page['name']:{width}} {page['median_ms']:9.1f} {page['queries']:5}")
    write_json(path, {"pages": pages})
    say(f"Written to {path}")
    return 0


def _measured(people: int) -> list[dict[str, Any]]:
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as name,
        start_services(Path(name), block_time=None, durable=False) as services,
    ):
        folder = Path(name)
        kept = keep_secrets(folder / "secrets.json")
        settings = django_environment(services, kept, port=free_port(), block_time=None) | {
            "DATABASE_STATEMENT_TIMEOUT_SECONDS": "0",
            "LOG_LEVEL": "ERROR",
            # It writes the past by hand, and has its tables analysed.
            **owner_environment(services),
        }
        say(f"Writing 100 entries and 20 relay transactions of {people:,} people, then opening the pages …")
        answer = folder / "pages.json"
        arguments = ("-m", "devstack.bench.admin_pages", str(answer), str(people))
        run_django(folder / "pages.log", process_environment(settings), *arguments)
        measured = read_json(answer)
        say(f"Written in {measured['filled_seconds']:.0f} s")
        return list(measured["pages"])
