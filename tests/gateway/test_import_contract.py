"""The import contract and the page about the architecture name every package."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


LINTER: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
PACKAGES, _, LAYERS_OF_APPS = LINTER["contracts"][:3]


def _layered() -> set[str]:
    return {name.strip() for line in PACKAGES["layers"] for name in line.replace("|", ":").split(":")}


def _apps() -> set[str]:
    return {path.parent.name for path in ROOT.glob("*/apps.py")}


def test_the_contract_reads_every_package() -> None:
    folders = (ROOT, ROOT / "tools", ROOT / "tools" / "stripe_double")
    packages = {path.parent.name for folder in folders for path in folder.glob("*/__init__.py")}
    assert packages == set(LINTER["root_packages"])


def test_every_app_has_its_layer() -> None:
    # The signer is a separate process without Django, and the Stripe double a separate program.
    assert _apps() | {"signer", "stripe_double"} == {name for name in _layered() if "." not in name}


def test_the_layers_inside_every_app_are_held() -> None:
    assert _apps() - {"backoffice"} == set(LAYERS_OF_APPS["containers"])
    assert LAYERS_OF_APPS["exhaustive"]


def test_the_page_about_the_architecture_names_every_package() -> None:
    page = (ROOT / "docs/architecture.md").read_text()

    def is_named(name: str) -> bool:
        return name.replace(".", "/") in page or f"`{name.rpartition('.')[2]}.py`" in page

    assert {name for name in _layered() if not is_named(name)} == set()


def test_the_image_contains_every_package() -> None:
    image, context = (ROOT / "Dockerfile").read_text(), (ROOT / ".dockerignore").read_text()

    assert {
        app
        for app in _apps() | {"signer"}
        if f"COPY {app} {app}\n" not in image or f"!{app}\n" not in context
    } == set()
