"""Long SQL statements are in `.sql` files, and no statement is put together from strings (CONTRIBUTING)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_MOST_LINES = 3
_STATEMENT = re.compile(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b")


def _files(pattern: str) -> Iterator[Path]:
    """Yield the product's files of this name."""
    for app in [*(path.parent for path in ROOT.glob("*/apps.py")), ROOT / "gateway", ROOT / "signer"]:
        yield from app.rglob(pattern)


def _modules() -> Iterator[Path]:
    """Yield the product's modules, except migrations and models, whose triggers are parts of them."""
    for path in _files("*.py"):
        if not {"migrations", "models", "models.py"} & set(path.parts):
            yield path


def _statements(path: Path) -> Iterator[tuple[ast.expr, str]]:
    """Yield each string with SQL, and its text; an f-string without its values."""
    tree = ast.parse(path.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
            text = "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            text = node.value
        else:
            continue
        if _STATEMENT.search(text):
            yield node, text


def test_long_statements_are_in_files() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _modules()
        for node, text in _statements(path)
        if len(text.strip().splitlines()) > _MOST_LINES
    ]
    assert long == []


def test_every_file_of_statements_is_read() -> None:
    unread = [
        str(path.relative_to(ROOT))
        for path in _files("*.sql")
        if path.name not in ("functions.sql", "retired.sql")
        and not any(
            module.exists() and "(Statements" in module.read_text().replace("\n    ", "")
            for module in (path.with_suffix(".py"), path.with_suffix("") / "__init__.py")
        )
    ]
    assert unread == []


def test_no_statement_is_formatted() -> None:
    formatted = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _modules()
        for node, _ in _statements(path)
        if isinstance(node, ast.JoinedStr)
    ]
    marked = [str(path.relative_to(ROOT)) for path in _modules() if "noqa: S608" in path.read_text()]
    assert (formatted, marked) == ([], [])
