"""`python -m devstack run`: the whole service on one machine."""

import json
import os
import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from devstack.console import echo, echo_error, mute, step
from devstack.django_process import DjangoFailed, run_django
from devstack.environment import overriding
from devstack.extension import extension_script
from devstack.files import read_json, write_json
from devstack.logins import login_lines
from devstack.ports import free_port, require_free_port
from devstack.preparation import Plan, Prepared, demo_plan, load_plan, prepare
from devstack.processes import Beat, DefaultWorker, Eraser, RelayWorker, Web, Worker
from devstack.second_chain import SecondChain, described_second, second_chain
from devstack.services.server import Server, stop_all
from devstack.services.stack import Services, alone_in, start_services
from devstack.signing import KeyPlace, signing_at
from devstack.stack_file import write_stack_file
from devstack.supervisor import supervise
from devstack.world.keys import address_of
from devstack.world.profiles import Profile

_WEB_PATIENCE_SECONDS = 600
# Signing and changes need a confirmation, as in an extension. An installed extension takes precedence.
_INSTALL = """
if (!window.lukso) {{
  const ask = async (request) => {{
    const body = JSON.stringify({{ jsonrpc: "2.0", id: 1, ...request }});
    const answer = await fetch({node}, {{ method: "POST", headers: {{ "Content-Type": "application/json" }}, body }});
    const {{ result, error }} = await answer.json();
    if (error) throw Object.assign(new Error(error.message), error);
    return result;
  }};
  installExtension({{
    name: "a test key (dev stack)",
    profiles: [{profile}],
    privateKey: {key},
    node: {{ request: ask }},
    approves: ({{ method }}) => confirm(`Test key of the dev stack: allow ${{method}}?`),
  }});
}}
"""


@dataclass(frozen=True)
class Options:
    """The options of the command line; a stack for load has a separate data folder."""

    directory: Path
    once: bool = False
    load: bool = False
    port: str | None = None
    block_time: float = 2
    keys: KeyPlace = KeyPlace.LOCAL
    home_only: bool = False

    @property
    def has_second_chain(self) -> bool:
        """Whether there is a second chain: the stack's signer is started for home, and load is for one."""
        return not (self.home_only or self.load) and self.keys == KeyPlace.LOCAL

    @property
    def stack_file(self) -> Path:
        """The file that describes the running stack."""
        return self.directory / "stack.json"

    @property
    def data(self) -> Path:
        """The folder of servers, secrets and logs."""
        return self.directory / "load" if self.load else self.directory

    @property
    def plan(self) -> Plan:
        """The content of the stack."""
        return load_plan() if self.load else demo_plan()


def run(options: Options) -> int:
    """Serve until a signal, or until the end of the journey."""
    started = time.monotonic()
    port = _port(options)
    echo(f"Starting the development stack; its data is in {options.data}")
    with (
        alone_in(options.directory) if options.load else nullcontext(),
        # Under load, the pauses of a node that saves its blocks would distort the measurement.
        start_services(options.data, block_time=options.block_time, saves_chain=not options.load) as services,
    ):
        prepared = prepare(services, options.data, options.plan, port=port, block_time=options.block_time)
        signing = signing_at(options.keys, services, prepared.secrets, options.data, prepared.settings)
        prepared = replace(prepared, settings=signing.settings)
        with ExitStack() as running:
            for process in signing.processes:
                running.enter_context(process.running())
            others = list[Server](signing.processes)
            if options.has_second_chain:
                second = running.enter_context(
                    second_chain(options.data / "second-chain", options.data / "log")
                )
                _prepare_second(second, services, prepared)
                others.append(second.node)
            return _serve(services, prepared, options, started, *others)


def _prepare_second(second: SecondChain, services: Services, prepared: Prepared) -> None:
    """Deploy the first profile's copy, fund the relayers, and add the chain to the settings."""
    second.copy(prepared.profiles[0], home=services.rpc)
    second.fund(*prepared.secrets.relayer_addresses, address_of(prepared.secrets.treasury_key))
    prepared.settings.update(second.settings)


def _serve(services: Services, prepared: Prepared, options: Options, started: float, *others: Server) -> int:
    logs = options.data / "log"
    if not options.load:
        stand_in = _write_stand_in(options.data / "dev-extension.js", services, prepared.profiles[0])
        prepared.settings.update(stand_in)
    # Each process takes seconds to import the service, and one is enough to try it out. Under load, half of the cores
    # are left for the other components, and more processes would make batches smaller.
    web_processes = max(1, (os.cpu_count() or 1) // 2) if options.load else 1
    web = Web(logs, prepared.environment, port=prepared.port, processes=web_processes)
    workers = _workers(logs, prepared.environment, options)
    if not options.load:
        workers.append(Eraser(logs, prepared.owner_environment))
    processes = [web, *workers]
    try:
        web.start()  # first, because its start takes as long as writing the demo data
        with step("database tables and demo data"):
            prepared.seed()
        for process in workers:
            process.start()
        with step("web server"):
            web.wait(_WEB_PATIENCE_SECONDS)
        _describe(services, prepared, web, options)
        seconds = f"{time.monotonic() - started:.1f}"
        echo(f"Ready in {seconds} s: {web.url}; logs in {logs}")
        return supervise(
            [*services.servers, *others, *processes], lambda: _play(prepared, options), logs_of=processes
        )
    except RuntimeError as error:  # before `mute`
        echo_error(f"✗ {error}")
        return 1
    finally:
        echo("Stopping.")
        mute()
        stop_all(processes)


def _write_stand_in(path: Path, services: Services, profile: Profile) -> dict[str, str]:
    """Write a stand-in for a browser extension, with a demo profile's key; return the setting that includes it."""
    installed = _INSTALL.format(
        node=json.dumps(services.rpc_url),
        profile=json.dumps(profile.profile_address),
        key=json.dumps(profile.controller.private_key),
    )
    path.write_text(extension_script() + installed)
    return overriding(DEV_EXTENSION_FILE=str(path.resolve()))


def _workers(logs: Path, environment: dict[str, str], options: Options) -> list[Server]:
    """Return one worker and beat, or for load the workers of production."""
    kinds = [RelayWorker, DefaultWorker, Beat] if options.load else [Worker, Beat]
    return [kind(logs, environment) for kind in kinds]


def _describe(services: Services, prepared: Prepared, web: Web, options: Options) -> None:
    write_stack_file(
        options.stack_file,
        services,
        base_url=web.url,
        staff=prepared.secrets.staff,
        staff_by_role=prepared.staff_by_role,
        profiles=prepared.profiles,
        networks=prepared.networks,
        sponsor=prepared.sponsor,
        second_chain=described_second(prepared.settings),
    )
    write_json(options.directory / "environment.json", prepared.settings)
    write_json(options.directory / "owner.json", prepared.owner_settings)


def _play(prepared: Prepared, options: Options) -> int | None:
    """Run the journey, then let some generated users subscribe; return None to keep serving."""
    outcome = 0 if options.load else _make_journey(options.stack_file) or _subscribe_some(prepared)
    if options.once:
        return outcome
    if not options.load:
        _compare(prepared)
    echo("Serving until Ctrl-C:")
    if not options.load:
        echo("\n".join(_addresses(read_json(options.stack_file))))
    echo(f"  keys of the demo profiles and other logins: {options.stack_file}")
    return None


def _addresses(description: dict[str, Any]) -> list[str]:
    """Return what to open in a browser, and a login with its present code."""
    url = description["base_url"]
    pages = {"account": "/account", "sponsors": "/sponsor", "API": "/api/docs", "guides": "/docs"}
    return [
        *(f"  {name:<9} {url}{path}" for name, path in pages.items()),
        *login_lines(description, "staff"),
    ]


def _make_journey(stack_file: Path) -> int:
    from devstack.journey.run import run_journey

    return run_journey(stack_file)


def _subscribe_some(prepared: Prepared) -> int:
    """Only after the journey, because events stop the provider's clock from being moved back."""
    with step("some generated users pay by card"):
        return _run(prepared, "payers", str(prepared.directory / "demo.json"))


def _compare(prepared: Prepared) -> int:
    with step("ledger, chain and Stripe are compared"):
        return _run(prepared, "books")


def _run(prepared: Prepared, module: str, *arguments: str) -> int:
    log = prepared.directory / "log" / f"{module}.log"
    try:
        run_django(log, prepared.environment, "-m", f"devstack.demo.{module}", *arguments)
    except DjangoFailed as error:
        echo_error(str(error))
        return 1
    return 0


def _port(options: Options) -> int:
    """Return the requested port, else the last run's, so that tokens stay valid, else a free one."""
    if options.port:
        return require_free_port(options.port)
    return free_port(urlsplit(read_json(options.stack_file).get("base_url", "")).port or 0)
