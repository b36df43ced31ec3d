"""`python -m lab containers`: build the image, start compose.yaml, and do to it what happens to operators."""

import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path

import psycopg

from devstack.console import echo, markdown, step
from devstack.rpc import Rpc
from devstack.stack_file import described
from devstack.world.abi import calldata
from devstack.world.deployer import ETHER
from devstack.world.world import World
from lab.chaos.proxies import Loop
from lab.chaos.traffic import Traffic
from lab.containers.bases import provide_bases
from lab.containers.engine import Engine, NoEngine, engine_at_hand
from lab.containers.outside import BLOCK_SECONDS, chain_at, proxy_of
from lab.containers.site import DEPLOYMENT, Site
from lab.containers.trials import CREDIT_WEI, KILLED, Row, Trials, timed
from lab.rehearsals.balancer import Balancer

_CLIENTS = 2
_NOT_RUN = 2
_SETTLED_SECONDS = 300


@dataclass(frozen=True)
class Options:
    """Where the engine's images are kept, and which parts of the trials are run."""

    directory: Path
    parts: list[str]


def run(options: Options) -> int:
    """Print the table; return 1 if anything was lost, 2 if nothing was run because there is no engine."""
    try:
        with engine_at_hand(options.directory.resolve()) as engine:
            return _run(engine, options.parts)
    except NoEngine as missing:
        echo(f"✗ Not run: no Docker engine is at hand: {missing}.")
        return _NOT_RUN


def _run(engine: Engine, parts: list[str]) -> int:
    loop = Loop()
    balancer = Balancer(loop)
    subnet = engine.docker("network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Subnet}}")
    # This machine, as the containers see it.
    host = str(ip_network(subnet)[1])
    place = Path(tempfile.mkdtemp(prefix="containers-"))
    with chain_at(host, place) as (anvil, world, profiles):
        site = Site.unpack(place / "site", engine, settings(anvil.url, f"127.0.0.1:{balancer.port}"))
        (site.folder / "gateway.server").write_text("server 127.0.0.1:8000;\n")
        try:
            with proxy_of(site.folder / "gateway.server", loop, balancer):
                trials = _begin(
                    site,
                    world,
                    Traffic(_url(balancer), Rpc(anvil.url), described(list(profiles)), clients=_CLIENTS),
                )
                return _report(trials, parts)
        finally:
            with step("removing the containers"), suppress(RuntimeError):
                site.shell("docker compose --profile upgrade down --volumes --timeout 5")
            shutil.rmtree(place, ignore_errors=True)


def _url(balancer: Balancer) -> str:
    return f"http://127.0.0.1:{balancer.port}"


def settings(node_url: str, host: str) -> dict[str, str]:
    """Return what an operator with this node, whose proxy responds at this host, writes for lines of `.env.example`."""
    further = [
        "STAFF_ENVIRONMENT=production",
        f"CHAIN_BLOCK_SECONDS={BLOCK_SECONDS}",
        "AUTH_ACCESS_SECONDS=86400",
    ]
    return {
        "https://node-one.example,https://node-two.example,https://node-three.example": node_url,
        "https://node-two.example": node_url,
        "AUTH_DOMAIN=gateway.example": f"AUTH_DOMAIN={host}",
        "https://gateway.example": f"http://{host}",
        "ALLOWED_HOSTS=gateway.example": "ALLOWED_HOSTS=127.0.0.1",
        "CHAIN_ID=42": "CHAIN_ID=4201",
        "CREDIT_WEI=1000000000000": f"CREDIT_WEI={CREDIT_WEI}",
        "STAFF_ENVIRONMENT=production": "\n".join(further),
    }


def _begin(site: Site, world: World, traffic: Traffic) -> Trials:
    """Follow docs/deployment.md until a call is settled."""
    if override := provide_bases(site.engine, site.folder):
        (site.folder / "compose.override.yaml").write_text(override)
    trials, began = Trials(site, traffic, world.deployer.rpc), time.monotonic()
    rows = trials.rows
    printed: list[str] = []
    timed(
        rows,
        "1. secrets, settings, image, keys",
        lambda: printed.append(site.documented(DEPLOYMENT, "## 1. Secrets and settings")),
    )
    addresses = re.findall(r"^0x[0-9a-fA-F]{40}$", printed[0], re.MULTILINE)
    timed(rows, "2. start", lambda: site.documented(DEPLOYMENT, "## 2. Start"))
    timed(rows, "all healthy", lambda: [site.wait_healthy(name) for name in site.running()])
    timed(rows, "4. staff", lambda: site.documented(DEPLOYMENT, "## 4. The first three members of staff"))
    timed(rows, "5. relayers", lambda: site.documented(DEPLOYMENT, "## 5. Relayers and contract code"))
    world.fund(100 * ETHER, addresses[-1])
    timed(rows, "first settled call", lambda: _first_call(site, traffic))
    echo(f"  From nothing to a settled call in {time.monotonic() - began:.0f} s.")
    return trials


def _first_call(site: Site, traffic: Traffic) -> None:
    traffic.sign_in()
    for number, wallet in enumerate(traffic.wallets):
        names = {"0xPROFILE": wallet.profile_address, "first-call": f"first-call-{number}"}
        site.documented(DEPLOYMENT, "## 8. Try it as a wallet does", 1, names=names)
    wallet = traffic.wallets[0]
    payload = calldata("setData(bytes32,bytes)", secrets.token_bytes(32), b"from nothing")
    status = wallet.relay.prepare(wallet.profile_address, payload).send().wait(_SETTLED_SECONDS)
    if status["status"] != "Success":
        raise RuntimeError(f"the first call is {status}")


def _report(trials: Trials, parts: list[str]) -> int:
    for part in parts:
        try:
            _PARTS[part](trials)
        except (RuntimeError, OSError, psycopg.Error) as error:
            trials.rows.append(Row(part, 0, wrong=[f"{type(error).__name__}: {error}"]))
            echo(f"  ✗ {part}: {error}")
    if trials.idle_usage:
        usage = [
            (name, f"{share:.1%}", f"{size / 2**20:.0f}")
            for name, (share, size) in sorted(trials.idle_usage.items())
        ]
        echo(f"\n{markdown(('container', 'processor when idle', 'memory, MiB'), usage)}")
    head = ("step", "seconds", "calls", "longest wait for an answer, s", "lost, doubled or wrong")
    echo(f"\n{markdown(head, [row.cells for row in trials.rows])}")
    return int(any(row.wrong for row in trials.rows))


def _kill_each(trials: Trials) -> None:
    for service in KILLED:
        trials.kill(service)


def _upgrade(trials: Trials) -> None:
    trials.site.shell("echo '# the next version' >> manage.py && GATEWAY_VERSION=next docker compose build")
    trials.replace("upgrade", "next", migrates=True)
    trials.replace("roll back", "current", migrates=False)


_PARTS: dict[str, Callable[[Trials], None]] = {
    "idle": Trials.idle,
    "commands": Trials.commands,
    "kills": _kill_each,
    "upgrade": _upgrade,
    "restore": Trials.restore,
}
