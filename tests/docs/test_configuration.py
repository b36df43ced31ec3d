"""The table of environment variables matches what the settings read."""

import ast
import operator
from typing import Any

from tests.docs.pages import DOCS, ROOT, code_spans, rows

_OPERATORS: dict[type[ast.operator], Any] = {ast.Pow: operator.pow, ast.Mult: operator.mul}


def _read_variables() -> dict[str, ast.expr | None]:
    """Return what `gateway.settings` reads through `env`, and the signer through `read`, with the default."""
    variables: dict[str, ast.expr | None] = {}
    pages = [(ROOT / name).read_text() for name in ("gateway/settings.py", "signer/configuration.py")]
    for node in [node for page in pages for node in ast.walk(ast.parse(page))]:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if (
            isinstance(node.func.value, ast.Name)
            and node.func.value.id in {"env", "read"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            name = ast.literal_eval(node.args[0])
            default = next((keyword.value for keyword in node.keywords if keyword.arg == "default"), None)
            if default is None and len(node.args) > 1:
                default = node.args[1]
            variables[name] = default
    return variables


def _documented() -> dict[str, list[str]]:
    documented = {}
    for cells in rows(DOCS / "configuration.md"):
        names = code_spans(cells[0])
        if names and len(cells) == 3:
            documented[names[0]] = cells
    return documented


def _value(expression: ast.expr) -> Any:
    """Return the value of a constant expression; other expressions raise ValueError."""
    if isinstance(expression, ast.BinOp) and type(expression.op) in _OPERATORS:
        return _OPERATORS[type(expression.op)](_value(expression.left), _value(expression.right))
    return ast.literal_eval(expression)


def test_the_table_names_every_variable_that_is_read_and_no_other() -> None:
    assert set(_documented()) == set(_read_variables())


def test_the_table_has_every_constant_default() -> None:
    documented = _documented()
    wrong = {}
    for name, expression in _read_variables().items():
        try:
            value = None if expression is None else _value(expression)
        except ValueError:
            continue  # Derived from another setting; the table describes how.
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        wanted = [] if value is None or text == "" else [text]
        written = code_spans(documented[name][1])
        if written != wanted:
            wrong[name] = (written, wanted)
    assert wrong == {}
