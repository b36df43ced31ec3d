"""The import contract knows every module of the project, so that none is without a floor."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def _contract() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return found


def _floors(*, below: int = 0) -> set[str]:
    """Return the modules that stand on a floor of the house, without the uppermost `below` floors."""
    lines = _contract()["contracts"][0]["layers"][below:]
    return {name.strip() for line in lines for name in line.replace("|", ":").split(":")}


def _modules_of(package: Path) -> set[str]:
    """Return the names of the modules and packages in the folder."""
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    return modules | {path.parent.name for path in package.glob("*/__init__.py")}


def test_every_module_of_the_gateway_stands_on_a_floor_and_no_other_does() -> None:
    named = {name.partition(".")[2] for name in _floors() if name.startswith("gateway.")}

    assert named == _modules_of(ROOT / "gateway")


def test_every_app_stands_on_a_floor_and_has_its_layers_held() -> None:
    apps = {path.parent.name for path in ROOT.glob("*/apps.py")} - {"gateway"}

    assert apps == {name for name in _floors() if "." not in name}
    assert apps == set(_contract()["contracts"][1]["containers"])
    assert _contract()["contracts"][1]["exhaustive"]


def test_the_page_about_the_architecture_draws_every_floor() -> None:
    picture = (ROOT / "docs/architecture.md").read_text().split("## The house")[1].split("```")[1]

    # Of what may import everything the picture gives examples.
    assert {name for name in _floors(below=1) if name not in picture} == set()
