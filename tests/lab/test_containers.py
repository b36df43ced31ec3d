"""The steps that `python -m lab containers` follows, which are read from the pages for operators."""

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.containers import run as containers
from lab.containers.bases import provide_bases
from lab.containers.engine import Engine
from lab.containers.site import DEPLOYMENT, RUNBOOK, Site, blocks, with_names
from tests.docs.pages import ROOT

STEPS = [
    (DEPLOYMENT, "## 1. Secrets and settings", 0, "python -m signer import $kind"),
    (DEPLOYMENT, "## 2. Start", 0, "docker compose up -d --build"),
    (DEPLOYMENT, "## 4. The first three members of staff", 0, "create_staff SAM --role support"),
    (DEPLOYMENT, "## 5. Relayers and contract code", 0, "manage.py sync_relayers"),
    (DEPLOYMENT, "## 8. Try it as a wallet does", 1, "adjust_credits 0xPROFILE 5000"),
    (RUNBOOK, "## Upgrade", 0, "up -d --no-deps --wait web-meanwhile"),
    (RUNBOOK, "## Back up", 1, "pg_basebackup"),
    (RUNBOOK, "### Restore", 0, "/backup/base-2026-11-23"),
    (RUNBOOK, "### Restore", 1, "manage.py list_unrecorded"),
]


@pytest.mark.parametrize(("page", "heading", "place", "command"), STEPS)
def test_each_step_is_documented_in_its_guide(page: str, heading: str, place: int, command: str) -> None:
    assert command in blocks((ROOT / page).read_text(), heading)[place]


def test_a_step_is_carried_out_with_the_operators_names_and_the_first_failure_ends_it(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "## A\n\n```sh\necho NAME # a comment\n\n# another\nfalse\necho more\n```\n\n## B\n"
    )
    site = Site(tmp_path, Engine("/nowhere"))

    with pytest.raises(RuntimeError, match="exit 1") as failed:
        site.documented("page.md", "## A", names={"NAME": "gateway"})

    assert str(failed.value).endswith("gateway\n")


def test_the_operators_names_are_in_the_settings_that_step_1_copies(tmp_path: Path) -> None:
    node, host = f"http://10.0.0.{secrets.randbelow(255)}:8545", f"127.0.0.1:{secrets.randbelow(2**16)}"

    site = Site.unpack(tmp_path / "site", Engine("/nowhere"), containers.settings(node, host))

    lines = (site.folder / ".env.example").read_text().splitlines()
    wanted = {
        f"CHAIN_RPC_URLS={node}",
        f"SIGNER_RPC_URL={node}",
        f"PUBLIC_URL=http://{host}",
        "CHAIN_ID=4201",
    }
    assert wanted <= set(lines)
    assert not [line for line in lines if ".example" in line and not line.startswith("#")]


def test_a_name_whose_example_is_no_longer_in_a_text_is_an_error() -> None:
    with pytest.raises(ValueError, match="node-one"):
        with_names("CHAIN_RPC_URLS=https://other.example", {"https://node-one.example": "http://10.0.0.1"})


def test_without_an_engine_the_command_says_so_and_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)

    assert containers.run(containers.Options(tmp_path / "engine", [])) == 2
    assert (
        "Not run: no Docker engine is at hand: the client `docker` is not installed"
        in capsys.readouterr().out
    )
    assert not (tmp_path / "engine").exists()


def _client(has: Callable[[tuple[str, ...]], bool]) -> type[Engine]:
    class Client(Engine):
        def docker(self, *arguments: str, given: str | None = None) -> str:
            if not has(arguments):
                raise RuntimeError("no such image")
            return "sha256:1"

    return Client


def test_pinned_images_are_used_unchanged_if_they_can_be_pulled() -> None:
    client = _client(lambda arguments: arguments[0] == "pull")

    assert provide_bases(client("/nowhere"), ROOT) == ""


def test_locally_built_images_replace_the_pinned_ones_by_tag() -> None:
    client = _client(lambda arguments: "@sha256:" not in arguments[-1])

    override = provide_bases(client("/nowhere"), ROOT)

    assert 'postgres: { image: "postgres:18" }' in override
    assert 'roles: { image: "postgres:18" }' in override
    assert 'redis: { image: "redis:8" }' in override
    assert 'PYTHON: "python:3.11-slim-bookworm"' in override
