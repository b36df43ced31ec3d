"""The rehearsal of dividing the ledger's entries by month, on few of them."""

import psycopg
from psycopg.rows import scalar_row

from devstack.rehearsals.partitions import rehearse
from devstack.services.stack import Services
from devstack.services.template import TEMPLATE


def test_entries_are_divided_while_entries_are_posted(services: Services) -> None:
    """It compares for itself that nothing is lost, posted twice, or can be changed afterwards."""
    name, url = "partitions", services.postgres.url("partitions")
    services.postgres.ensure_database(name, template=TEMPLATE)
    try:
        with psycopg.connect(url, autocommit=True, row_factory=scalar_row) as connection:
            assert rehearse(connection, url, 2_000) == 0
    finally:
        with psycopg.connect(services.postgres.url("postgres"), autocommit=True) as connection:
            connection.execute(b"DROP DATABASE partitions WITH (FORCE)")
