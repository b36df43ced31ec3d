"""The database of the tests is a copy of the template, and whole."""

import pytest
from django.core.management import call_command
from django.db import connection

from devstack.services.template import TEMPLATE


@pytest.mark.django_db
def test_the_database_of_the_tests_has_nothing_left_to_migrate() -> None:
    assert connection.settings_dict["TEST"]["TEMPLATE"] == TEMPLATE
    call_command("migrate", "--check", verbosity=0)  # ends with an error where one is missing
