"""The path from an empty machine sets what the service needs, and subscribes to the events that it handles."""

import re
from typing import Any

import yaml

from payments.services.snapshots import EVENT_TYPES
from tests.docs.pages import DOCS, ROOT, code_spans, rows

PAGE = (DOCS / "deployment.md").read_text()
_SETTING = re.compile(r"^(?:# )?([A-Z][A-Z0-9_]+)=", re.MULTILINE)


def _explained() -> dict[str, str]:
    """Return the variables of the page about configuration, each with its documented default."""
    cells = [row for row in rows(DOCS / "configuration.md") if len(row) == 3 and code_spans(row[0])]
    return {code_spans(row[0])[0]: row[1] for row in cells}


def _written() -> set[str]:
    """Return the variables of `.env.example`, with those that are commented out."""
    return set(_SETTING.findall((ROOT / ".env.example").read_text()))


def _given() -> set[str]:
    """Return the variables that `compose.yaml` gives web, by themselves or as a file."""
    services: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    return {name.removesuffix("_FILE") for name in services["web"]["environment"]}


def test_the_example_and_compose_set_everything_that_has_no_default() -> None:
    required = {name for name, default in _explained().items() if default.startswith("required")}

    assert len(required) > 10
    assert required <= _written() | _given()


def test_the_example_has_no_variable_that_is_not_read() -> None:
    assert _written() <= {*_explained(), "POSTGRES_PASSWORD", "POSTGRES_APPLICATION_PASSWORD"}


def test_the_webhook_subscribes_to_every_event_that_is_handled_and_no_other() -> None:
    listed = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert listed is not None

    assert sorted(listed[1].split()) == sorted(EVENT_TYPES)
