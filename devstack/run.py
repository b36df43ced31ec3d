"""`python -m devstack run`: the whole service on one machine, from nothing to served."""

import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from devstack.console import complain, say, step
from devstack.django_process import DjangoFailed, run_django
from devstack.furnishing import Furnished, furnish
from devstack.journey import travel
from devstack.lifelines import adopt_orphans, end_descendants
from devstack.parts import Beat, Web, Worker
from devstack.private_file import read_json
from devstack.services import ServerFailed, Services, start_services
from devstack.services.server import free_port
from devstack.stack_file import write_stack_file
from devstack.supervisor import Supervisor

_PEOPLE = 200


@dataclass(frozen=True)
class Options:
    """What the command line asks for."""

    directory: Path
    once: bool = False
    port: int | None = None
    block_time: float = 2


def run(options: Options) -> int:
    """Serve until told to stop, or for the length of the journey; leave no process behind."""
    started = time.monotonic()
    adopt_orphans()
    say(f"Starting the development stack; its data is in {options.directory}")
    try:
        with start_services(options.directory, block_time=options.block_time) as services:
            return _serve(services, options, started)
    finally:
        end_descendants()


def _serve(services: Services, options: Options, started: float) -> int:
    port = _port(options)
    room = furnish(services, options.directory, port=port, block_time=options.block_time, people=_PEOPLE)
    logs = options.directory / "log"
    web = Web(logs, room.environment, port=port)
    parts = [web, Worker(logs, room.environment), Beat(logs, room.environment)]

    def opening() -> int | None:
        return _open(web, services, room, options, started)

    return Supervisor(parts, services.servers, opening).run()


def _open(web: Web, services: Services, room: Furnished, options: Options, started: float) -> int | None:
    try:
        web.wait(patience=180)
    except ServerFailed as error:
        complain(str(error))
        return 1
    path = options.directory / "stack.json"
    write_stack_file(
        path,
        services,
        base_url=web.url,
        staff=room.secrets.staff,
        profiles=room.profiles,
        networks=room.networks,
    )
    say(
        f"Ready in {time.monotonic() - started:.1f} s: {web.url}, admin {web.url}/admin/, API {web.url}/api/docs"
    )
    say(f"  logs in {options.directory / 'log'}; addresses, keys and passwords in {path}")
    outcome = travel(path) or _let_some_pay(options.directory, room)
    if options.once:
        return outcome
    say("Serving until Ctrl-C.")
    return None


def _let_some_pay(directory: Path, room: Furnished) -> int:
    """Only after the journey: before it, the payment provider's clock can still be moved back."""
    with step("some generated users pay by card"):
        log, plan = directory / "log" / "payers.log", directory / "demo.json"
        try:
            run_django(log, room.environment, "-m", "devstack.population.payers", str(plan))
        except DjangoFailed as error:
            complain(str(error))
            return 1
    return 0


def _port(options: Options) -> int:
    """Return the port asked for, else the last run's, so that addresses and tokens stay good, else a free one."""
    last = urlsplit(read_json(options.directory / "environment.json").get("PUBLIC_URL", "")).port
    return options.port or free_port(last or 0)
