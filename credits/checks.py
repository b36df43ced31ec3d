"""System checks of the ledger."""

from django.conf import settings
from django.core.checks import CheckMessage, Warning
from django.db import connection

from gateway.common.checks import asks_the_database

_MAY_ALTER = """
SELECT has_table_privilege(coalesce(nullif(%s, ''), current_user), 'credits_entry', 'UPDATE, DELETE, TRUNCATE')
"""


@asks_the_database
def entries_are_out_of_reach() -> list[CheckMessage]:
    """Warn if the application role may alter entries."""
    with connection.cursor() as cursor:
        cursor.execute(_MAY_ALTER, [settings.DATABASE_APPLICATION_ROLE])
        (may_alter,) = cursor.fetchone()
    if not may_alter:
        return []
    text = "The processes' database role may change and delete entries of the ledger."
    hint = "Connect the processes as a separate role, and name it in migrate's DATABASE_APPLICATION_ROLE."
    return [Warning(text, hint=hint, id="credits.W001")]
