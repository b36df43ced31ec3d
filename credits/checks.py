"""System checks of the ledger."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register
from django.db import OperationalError, connection

_MAY_ALTER = """
SELECT has_table_privilege(coalesce(nullif(%s, ''), current_user), 'credits_entry', 'UPDATE, DELETE, TRUNCATE')
"""


@register("credits", deploy=True)
def entries_are_out_of_reach(**_: Any) -> list[CheckMessage]:
    """Warn if the application role may alter entries; runs only with `--deploy`, since it queries the database."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(_MAY_ALTER, [settings.DATABASE_APPLICATION_ROLE])
            (may_alter,) = cursor.fetchone()
    except OperationalError:
        return [Warning("The database cannot be queried for privileges on the ledger.", id="credits.W001")]
    if not may_alter:
        return []
    text = "The processes' database role may change and delete entries of the ledger."
    hint = "Connect the processes as a separate role, and name it in migrate's DATABASE_APPLICATION_ROLE."
    return [Warning(text, hint=hint, id="credits.W001")]
