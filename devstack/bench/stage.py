"""A service of its own for the benchmark: many profiles, many relayers, one-second blocks."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import psycopg
from eth_account import Account

from devstack.bench.processor import Meter
from devstack.django_process import run_django
from devstack.environment import django_environment, keep_secrets, process_environment
from devstack.files import write_json
from devstack.gateway_api import GatewayApi
from devstack.processes import Beat, Web, Worker
from devstack.services.server import free_port
from devstack.services.stack import Services, start_services
from devstack.wallet import Wallet
from devstack.world.deployer import ETHER
from devstack.world.profiles import Profile, ProfilePlan

_RELAYERS, _IN_FLIGHT = 16, 64


class RelayWorker(Worker):
    """The worker of relay calls alone, as `compose.yaml` runs it."""

    name: ClassVar[str] = "worker-relay"
    queues: ClassVar[str] = "relay"


class DefaultWorker(Worker):
    """The worker of everything else."""

    name: ClassVar[str] = "worker-default"
    queues: ClassVar[str] = "default"


@dataclass(frozen=True)
class Stage:
    """What the load needs: signed-in wallets, the processes and what they use, a look into the records."""

    base_url: str
    wallets: list[Wallet]
    meter: Meter
    database_url: str

    def settled(self) -> int:
        """Count the relay transactions that have ended."""
        return self._count("SELECT count(*) FROM relay_relaytransaction WHERE settled_at IS NOT NULL")

    def successes(self) -> int:
        """Count those that ended well."""
        return self._count("SELECT count(*) FROM relay_relaytransaction WHERE status = 'Success'")

    def _count(self, question: str) -> int:
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(question).fetchone()
        return int(row[0]) if row else 0


@contextmanager
def stage(*, profiles: int) -> Iterator[Stage]:
    """Run a whole service in a folder of its own; leave nothing of it behind."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        start_services(Path(folder), block_time=1) as services,
        ExitStack() as parts,
    ):
        yield _set(services, Path(folder), profiles, parts)


def _set(services: Services, folder: Path, profiles: int, running: ExitStack) -> Stage:
    port = free_port()
    made = services.world.create_profiles(*(ProfilePlan() for _ in range(profiles)))
    relayers = ["0x" + secrets.token_hex(32) for _ in range(_RELAYERS)]
    services.world.fund(1_000 * ETHER, *(Account.from_key(key).address for key in relayers))
    kept = keep_secrets(folder / "secrets.json")
    settings = django_environment(services, kept, port=port, block_time=1) | {
        "RELAY_RELAYER_KEYS": ",".join(relayers),
        "RELAY_MAX_IN_FLIGHT": str(_IN_FLIGHT),
        "LOG_LEVEL": "WARNING",
    }
    environment = process_environment(settings)
    contracts = services.world.implementations
    plan = {
        "implementations": {"profile": contracts.universal_profile, "key-manager": contracts.key_manager},
        "profiles": [profile.profile_address for profile in made],
        "staff": vars(kept.staff),
    }
    write_json(folder / "demo.json", plan)
    run_django(folder / "demo.log", environment, "-m", "devstack.demo_data", str(folder / "demo.json"))
    web = Web(folder, environment, port=port)
    parts = (
        web,
        RelayWorker(folder, environment),
        DefaultWorker(folder, environment),
        Beat(folder, environment),
    )
    for part in parts:
        part.start()
        running.callback(part.stop)
    # At this level of logging the others do not tell when they are ready.
    web.wait()
    meter = Meter(
        service={part.name: part for part in parts},
        beside={"PostgreSQL": services.postgres, "Redis": services.redis, "node": services.anvil},
    )
    return Stage(
        web.url, [_signed_in(profile, web.url, services) for profile in made], meter, services.database_url
    )


def _signed_in(profile: Profile, url: str, services: Services) -> Wallet:
    key = profile.controller.private_key
    wallet = Wallet(profile.profile_address, profile.key_manager_address, key, GatewayApi(url), services.rpc)
    wallet.sign_in()
    return wallet
