"""The pages name commands, statuses and checks that exist."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from relay.models import RelayTransaction
from tests.docs.pages import DOCS, PAGES, ROOT, code_spans, prose, rows

_CHECK_ID = re.compile(r'\bid="([a-z]+\.[EWI]\d{3})"')
_TARGET = re.compile(r"^([a-z-]+):.*##", re.MULTILINE)
_ADDED = re.compile(r'\.add_parser\(\s*"([a-z-]+)"')


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_exists(page: Path) -> None:
    text = page.read_text()
    code = "\n".join([*code_spans(text), *_fenced(text)])
    make = re.findall(r"\bmake ([a-z-]+)\b", code)
    modules = re.findall(r"python -m (lab|devstack) ([a-z][a-z-]*)", code)
    manage = re.findall(r'(?:manage\.py |make manage CMD=")([a-z_]+)', text)

    assert set(make) <= set(_TARGET.findall((ROOT / "Makefile").read_text()))
    assert set(modules) <= {(name, command) for name in ("lab", "devstack") for command in _commands_of(name)}
    assert set(manage) <= set(get_commands())


def _commands_of(package: str) -> list[str]:
    return _ADDED.findall((ROOT / "tools" / package / "__main__.py").read_text())


def _fenced(text: str) -> list[str]:
    return re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL)


def test_every_system_check_that_the_runbook_explains_exists() -> None:
    files = [path for pattern in ("[!t]*/*.py", "gateway/*/*.py") for path in ROOT.glob(pattern)]
    checks = {check for path in files for check in _CHECK_ID.findall(path.read_text())}
    explained = {name for cells in rows(DOCS / "runbook.md") for name in code_spans(cells[0])}

    assert {name for name in explained if re.fullmatch(r"[a-z]+\.[EWI]\d{3}", name)} <= checks


def test_the_runbook_explains_every_status() -> None:
    explained = {cells[0].strip("`") for cells in rows(DOCS / "runbook.md")}

    assert set(RelayTransaction.Status.values) <= explained


def test_no_page_has_a_local_path() -> None:
    pages = [str(page) for page in PAGES if re.search(r"/(?:home|root|opt|work)/", prose(page))]

    assert pages == []
