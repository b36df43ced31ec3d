"""The cluster's addresses for the service's settings: databases through HAProxy, Redis through Sentinels."""

from dataclasses import dataclass

import psycopg

from devstack.ad_networks.demo import VerifierKeys
from devstack.services.anvil import CHAIN_ID, Anvil
from devstack.services.postgres import APPLICATION_ROLE, DATABASE
from devstack.services.stripe_double import StripeDouble
from devstack.services.template import TEMPLATE
from devstack.world.world import World
from lab.cluster import network, settings


@dataclass(frozen=True)
class ClusterOutside:
    """Implements `devstack.services.outside.Outside`."""

    anvil: Anvil
    stripe: StripeDouble
    verifier_keys: VerifierKeys
    world: World
    password: str
    pools_transactions: bool = True

    @property
    def database_url(self) -> str:
        """URL of the primary for the owner, from anywhere."""
        return owner_url(self.password, DATABASE)

    @property
    def application_database_url(self) -> str:
        """URL of the PgBouncer on each host of the service."""
        return f"postgresql://{APPLICATION_ROLE}@127.0.0.1:{settings.POOL_PORT}/{DATABASE}"

    @property
    def direct_database_url(self) -> str:
        """URL of the primary through the HAProxy on each host of the service."""
        return f"postgresql://{APPLICATION_ROLE}:{self.password}@127.0.0.1:{settings.PRIMARY_PORT}/{DATABASE}"

    @property
    def redis_url(self) -> str:
        """URL with the Sentinels."""
        return settings.redis_url(network.DATABASES)

    @property
    def rpc_url(self) -> str:
        """URL of the node."""
        return self.anvil.url

    @property
    def chain_id(self) -> int:
        """The chain's id."""
        return CHAIN_ID

    def empty_database(self) -> None:
        """Recreate the database from the cluster's template, and set the password of the service's role."""
        with psycopg.connect(owner_url(self.password, "postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {DATABASE} TEMPLATE {TEMPLATE}")
            connection.execute(f"ALTER ROLE {APPLICATION_ROLE} PASSWORD '{self.password}'")


def owner_url(password: str, database: str) -> str:
    """Return the URL of a database on the primary, through the front host."""
    return f"postgresql://postgres:{password}@{network.FRONT.address}:{settings.PRIMARY_PORT}/{database}"
