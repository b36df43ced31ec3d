"""The tables of a new database are a copy of the template's, which follows the migrations."""

from pathlib import Path

import psycopg
import pytest

from devstack.services import template
from devstack.services.stack import Services


def tables(url: str) -> set[str]:
    """Return the names of a database's tables."""
    with psycopg.connect(url) as database:
        rows = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {name for (name,) in rows}


def test_a_new_and_an_emptied_database_have_all_tables_without_a_migration(services: Services) -> None:
    made = tables(services.database_url)
    assert {"users_user", "django_migrations"} <= made
    with psycopg.connect(services.database_url) as database:
        database.execute("CREATE TABLE another ()")
    services.empty_database()
    assert tables(services.database_url) == made


def test_another_migration_rendered_function_or_package_makes_another_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template, "PROJECT", tmp_path)
    for folder in ("requirements", "app/migrations", "project/app/migrations"):
        (tmp_path / folder).mkdir(parents=True)
    keys = set()
    for file, content in (
        ("requirements/dev.txt", "django==5"),
        ("app/migrations/0001_initial.py", "operations = []"),
        ("app/migrations/0001_initial.py", "operations = [None]"),
        ("requirements/dev.txt", "django==6"),
        ("project/app/migrations/0001_initial.py", "operations = []"),
        ("app/functions.sql", "SELECT 1"),
        ("app/models.py", "STATUS = 'Pending'"),
        ("app/models.py", "STATUS = 'Waiting'"),
    ):
        (tmp_path / file).write_text(content)
        keys.add(template.template_key())
    assert len(keys) == 8
    (tmp_path / "app" / "queries.py").write_text("")
    assert template.template_key() in keys
