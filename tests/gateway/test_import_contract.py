"""The import contract and the page about the architecture name every package."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def _contracts() -> list[dict[str, Any]]:
    contracts: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "importlinter"
    ]["contracts"]
    return contracts


def _layered() -> set[str]:
    return {name.strip() for line in _contracts()[0]["layers"] for name in line.replace("|", ":").split(":")}


def _apps() -> set[str]:
    return {path.parent.name for path in ROOT.glob("*/apps.py")}


def test_every_app_has_its_layer() -> None:
    # The signer is a process of its own, and no app of Django's.
    assert _apps() | {"signer"} == {name for name in _layered() if "." not in name}


def test_the_layers_inside_every_app_are_held() -> None:
    assert _apps() - {"backoffice"} == set(_contracts()[2]["containers"])
    assert _contracts()[2]["exhaustive"]


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
