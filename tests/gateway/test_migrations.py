"""Migrations are frozen: what they did once they do for ever, whatever the code has become."""

import ast
from collections.abc import Iterator

import pytest
from django.core.management import call_command

from devstack.files import PROJECT, TOOLS

# Custom fields keep their names and their columns, so migrations may import them; and packages of others.
_ALLOWED = {"gateway.common.fields"}
_OURS = {
    path.name for folder in (PROJECT, TOOLS) for path in folder.iterdir() if (path / "__init__.py").exists()
}
MIGRATIONS = sorted(
    path for pattern in ("*/migrations/0*.py", "*/*/migrations/0*.py") for path in PROJECT.glob(pattern)
)


def imported_by(source: str) -> Iterator[str]:
    """Yield the modules that a file imports, anywhere in it, and what else reaches another module by its name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.Name) and node.id in {"import_module", "__import__", "open", "Path"}:
            yield f"by {node.id}"


def test_a_migration_imports_nothing_of_ours_that_can_change() -> None:
    assert len({path.parent for path in MIGRATIONS}) >= 9
    assert {
        (path, name)
        for path in MIGRATIONS
        for name in set(imported_by(path.read_text())) - _ALLOWED
        if name.partition(".")[0] in _OURS | {""} or name.startswith("by ")
    } == set()


@pytest.mark.django_db
def test_the_models_have_nothing_that_no_migration_has() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
