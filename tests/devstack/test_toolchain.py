"""The npm packages of the stack: exact, light, and recorded without addresses."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from devstack import toolchain

_FOLDER = Path(toolchain.__file__).parent
_BOTH = pytest.mark.parametrize("folder", [_FOLDER, _FOLDER / "biome"], ids=["devstack", "biome"])


@_BOTH
def test_the_lock_file_records_integrity_and_no_address(folder: Path) -> None:
    text = (folder / "package-lock.json").read_text()
    packages: dict[str, dict[str, Any]] = json.loads(text)["packages"]
    assert "resolved" not in text
    assert "://" not in text
    assert all(entry["integrity"].startswith("sha512-") for place, entry in packages.items() if place)


@_BOTH
def test_every_version_is_exact(folder: Path) -> None:
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())


def test_an_installed_toolchain_is_not_installed_again(capfd: pytest.CaptureFixture[str]) -> None:
    toolchain.install_toolchain()
    capfd.readouterr()
    toolchain.install_toolchain()
    assert capfd.readouterr().out == ""
    assert toolchain.anvil_binary().exists()


def test_without_a_network_one_message_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("package.json", "package-lock.json")
    for name in names:
        (tmp_path / name).write_text((_FOLDER / name).read_text())
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_fetch_retries", "0")

    with pytest.raises(RuntimeError) as refused:
        toolchain.install_node_packages(tmp_path, "the packages of a test")

    assert str(refused.value).startswith(
        "npm's registry does not respond, so its packages were not installed."
    )
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "node_modules" / ".installed").exists()
