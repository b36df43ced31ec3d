"""`manage.py erase_deleted_accounts`, in a process that has only the secrets of the eraser."""

from typing import Any

import pytest
from django.core.management import CommandError

from users.management.commands.erase_deleted_accounts import Command

pytestmark = pytest.mark.django_db


def test_it_needs_the_owner_of_the_tables_and_none_of_the_secrets_of_other_processes(settings: Any) -> None:
    settings.AUTH_SIGNING_KEYS = ""
    settings.AUTH_REFRESH_SECRET = ""

    with pytest.raises(CommandError, match="Only the owner of the tables may erase"):
        Command().execute(skip_checks=False, force_color=False, no_color=False, every=None)
