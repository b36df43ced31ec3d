"""The pages name files, modules, functions, tasks and permissions that exist."""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from celery import current_app
from django.apps import apps

from tests.docs.pages import PAGES, ROOT, code_spans, prose, rows
from webhooks.models import EventType

_PACKAGES = {path.parent.name for path in ROOT.glob("*/__init__.py")}
_PATH = re.compile(r"[\w.-]+(?:/[\w.*-]+)*(?:/|\.(?:py|md|sql|yml|yaml|toml|json))")
_DOTTED = re.compile(r"[a-z_]\w*(?:\.\w+)+(?:\(\))?")
# The recipes of CONTRIBUTING.md create these.
_CREATED = {"tests/portal/api/test_badges.py", "earnings/networks/example_offers.py"}
_CHECK_ID = re.compile(r"[a-z]+\.[EWI]\d{3}")


def _permissions() -> set[str]:
    return {
        f"{model._meta.app_label}.{codename}"
        for model in apps.get_models()
        for codename in (
            *(f"{action}_{model._meta.model_name}" for action in model._meta.default_permissions),
            *(codename for codename, _ in model._meta.permissions),
        )
    }


def _is_importable(name: str) -> bool:
    """Return whether the name is a module, or an attribute of one."""
    module, _, rest = name.removesuffix("()").partition(".")
    while rest:
        head, _, tail = rest.partition(".")
        try:
            is_module = find_spec(f"{module}.{head}") is not None
        except ModuleNotFoundError:
            is_module = False
        if not is_module:
            return _has_attribute(module, rest)
        module, rest = f"{module}.{head}", tail
    return True


def _has_attribute(module: str, path: str) -> bool:
    value: object = import_module(module)
    for name in path.split("."):
        if not hasattr(value, name):
            return False
        value = getattr(value, name)
    return True


def _names(text: str) -> list[str]:
    return [word for span in code_spans(text) for word in span.split()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    paths = {
        name for name in _names(prose(page)) if _PATH.fullmatch(name) and name.split("/")[0] in _PACKAGES
    }

    assert {name for name in paths - _CREATED if not any(ROOT.glob(name.rstrip("/")))} == set()


def test_every_file_that_the_architecture_lists_for_a_package_is_in_it() -> None:
    listed = {
        f"{package}{name}"
        for first, *others in rows(ROOT / "docs/architecture.md")
        for package in code_spans(first)
        for name in code_spans(" ".join(others))
        if package.endswith("/") and re.fullmatch(r"[\w/]+(?:\.py|/)", name)
    }

    assert len(listed) > 10
    assert {name for name in listed if not (ROOT / name).exists()} == set()


# The changelog also names what was replaced.
@pytest.mark.parametrize(
    "page", sorted({*PAGES} - {ROOT / "CHANGELOG.md"}), ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_dotted_name_on_a_page_is_code_a_task_a_permission_or_an_event(page: Path) -> None:
    current_app.loader.import_default_modules()
    elsewhere = {*current_app.tasks, *_permissions(), *EventType.values}
    names = {
        name
        for name in _names(prose(page))
        if _DOTTED.fullmatch(name) and name.split(".")[0] in _PACKAGES and not _PATH.fullmatch(name)
    }

    unknown = {name for name in names - elsewhere if not _CHECK_ID.fullmatch(name)}
    assert {name for name in unknown if not _is_importable(name)} == set()


def test_the_recipes_import_what_exists() -> None:
    imports = re.findall(r"^ +from (\S+) import (.+)$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    names = {
        f"{module}.{name.strip()}"
        for module, imported in imports
        for name in imported.split(",")
        if module.split(".")[0] in _PACKAGES
    }

    assert len(names) >= 10
    assert {name for name in names if not _is_importable(name)} == set()
