"""PostgreSQL, Redis, the chain with its contracts and the Stripe double, started and stopped together."""

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from devstack.ad_networks.demo import VerifierKeys, serve_verifier_keys
from devstack.console import step
from devstack.rpc import Rpc
from devstack.services import pgbouncer
from devstack.services.anvil import CHAIN_ID, Anvil, Node
from devstack.services.pgbouncer import PgBouncer
from devstack.services.postgres import APPLICATION_ROLE, DATABASE, Postgres
from devstack.services.redis import Redis
from devstack.services.server import Server, ServerFailed, stop_all
from devstack.services.stripe_double import StripeDouble
from devstack.services.template import TEMPLATE, copy_template
from devstack.world.world import World, load_world


@dataclass(frozen=True)
class Services:
    """The running servers: their addresses, and the contracts on the chain."""

    postgres: Postgres
    redis: Redis
    node: Node
    stripe: StripeDouble
    verifier_keys: VerifierKeys
    world: World
    # PgBouncer, if the environment enables it.
    pooler: PgBouncer | None = None

    @property
    def servers(self) -> tuple[Server, ...]:
        """Every server of the stack."""
        always = (self.postgres, self.redis, self.node, self.stripe)
        return (*always, self.pooler) if self.pooler else always

    @property
    def database_url(self) -> str:
        """URL of the database for its owner, over a unix socket named in `?host=`."""
        return self.postgres.url()

    @property
    def application_database_url(self) -> str:
        """URL of the database for the service's processes."""
        return self.pooler.url(DATABASE) if self.pooler else self.direct_database_url

    @property
    def direct_database_url(self) -> str:
        """The same, bypassing the pooler."""
        return self.postgres.url(role=APPLICATION_ROLE)

    @property
    def pools_transactions(self) -> bool:
        """Whether PgBouncer pools transactions in front of PostgreSQL."""
        return self.pooler is not None

    def empty_database(self) -> None:
        """Recreate the database, with all tables."""
        self.postgres.drop_database()
        self.postgres.ensure_database(template=TEMPLATE)

    @property
    def redis_url(self) -> str:
        """URL of the Redis database 0."""
        return self.redis.url

    @property
    def rpc_url(self) -> str:
        """URL of the chain's JSON-RPC."""
        return self.node.url

    @property
    def chain_id(self) -> int:
        """The chain's id."""
        return CHAIN_ID

    @property
    def rpc(self) -> Rpc:
        """The JSON-RPC client of the chain."""
        return self.world.deployer.rpc


@contextmanager
def start_services(
    directory: Path,
    *,
    block_time: float | None = 1,
    durable: bool = True,
    saves_chain: bool = True,
    postgres_settings: Sequence[str] = (),
    make_node: Callable[..., Node] = Anvil,
) -> Iterator[Services]:
    """
    Run PostgreSQL, Redis, the chain and the Stripe double with their data under `directory`; list AdMob's keys.

    They are ready when the block is entered and stopped when it is left; if the calling thread dies, Linux stops them.
    Chain, database and double keep their data across runs. Only one caller at a time may use a directory. The double
    sends no events before `stripe.controls.set_webhook_endpoint`.
    """
    directory = directory.resolve()
    logs = directory / "log"
    postgres = Postgres(
        directory / "postgres",
        logs,
        durable=durable,
        make_cluster=copy_template,
        settings=postgres_settings,
    )
    redis = Redis(directory / "redis", logs)
    saves = durable and saves_chain
    node = make_node(directory / "anvil", logs, block_time=block_time, saves_meanwhile=saves)
    stripe = StripeDouble(directory / "stripe", logs)
    with alone_in(directory), serve_verifier_keys() as verifier_keys:
        try:
            with step("starting PostgreSQL, Redis, the chain and the Stripe double"):
                _start(postgres, redis, node, stripe)
            postgres.ensure_application_role()
            postgres.ensure_database(template=TEMPLATE)
            node.mine_a_past()
            world = load_world(node.rpc, directory / "world.json")
            with _pooler(postgres, logs) as pooler:
                yield Services(postgres, redis, node, stripe, verifier_keys, world, pooler)
        finally:
            stop_all((stripe, node, redis, postgres))


def _pooler(postgres: Postgres, logs: Path) -> AbstractContextManager[PgBouncer | None]:
    return PgBouncer(postgres, logs).running() if pgbouncer.is_wanted() else nullcontext()


def _start(*servers: Server) -> None:
    for server in servers:
        server.start()
    for server in servers:
        server.wait()


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Lock the directory during the block."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ServerFailed(f"Another stack is running on {directory}; stop it first.") from error
        yield
