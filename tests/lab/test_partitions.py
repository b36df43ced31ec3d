"""The rehearsal of dividing by month what grows for ever, on few rows."""

import psycopg
import pytest
from psycopg.rows import scalar_row

from devstack.services.stack import Services
from devstack.services.template import TEMPLATE
from lab.rehearsals.partitions import DIVISIONS, rehearse


@pytest.mark.parametrize("table", DIVISIONS)
def test_a_table_is_divided_while_it_is_written(services: Services, table: str) -> None:
    """It compares for itself that nothing is lost or written twice, and that every part has its triggers."""
    name, url = f"divided_{table}", services.postgres.url(f"divided_{table}")
    services.postgres.ensure_database(name, template=TEMPLATE)
    try:
        with psycopg.connect(url, autocommit=True, row_factory=scalar_row) as connection:
            assert rehearse(connection, url, DIVISIONS[table], 2_000) == 0
    finally:
        with psycopg.connect(services.postgres.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
