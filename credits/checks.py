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
    """Warn if the role of the processes may alter entries; runs only with `--deploy`, since it asks the database."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(_MAY_ALTER, [settings.DATABASE_APPLICATION_ROLE])
            (may_alter,) = cursor.fetchone()
    except OperationalError:
        return [Warning("The database cannot be asked who may alter the ledger.", id="credits.W001")]
    if not may_alter:
        return []
    text = "The processes' database role may change and delete entries of the ledger."
    hint = "Connect them as a role of its own, and name it to migrate in DATABASE_APPLICATION_ROLE."
    return [Warning(text, hint=hint, id="credits.W001")]
