"""The servers around the service, on one host or on many."""

from typing import Protocol

from devstack.ad_networks.demo import VerifierKeys
from devstack.services.stripe_double import StripeDouble
from devstack.world.world import World


class Outside(Protocol):
    """Addresses of servers, and contracts on the chain, for the service's settings."""

    @property
    def database_url(self) -> str:
        """URL of the database for the owner of its tables."""

    @property
    def application_database_url(self) -> str:
        """URL of the database for the service's processes."""

    @property
    def direct_database_url(self) -> str:
        """The same, bypassing the pooler."""

    @property
    def pools_transactions(self) -> bool:
        """Whether PgBouncer pools transactions in front of PostgreSQL."""

    @property
    def redis_url(self) -> str:
        """URL of Redis."""

    @property
    def rpc_url(self) -> str:
        """URL of the chain's JSON-RPC."""

    @property
    def chain_id(self) -> int:
        """The chain's id."""

    @property
    def stripe(self) -> StripeDouble:
        """The payment provider."""

    @property
    def verifier_keys(self) -> VerifierKeys:
        """The list of AdMob's keys."""

    @property
    def world(self) -> World:
        """The contracts on the chain."""

    def empty_database(self) -> None:
        """Recreate the database with all tables and no rows."""
