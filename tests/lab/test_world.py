"""The product's trial on clients of other makers: installing them, and translating anvil's control methods."""

from pathlib import Path

import pytest

from lab.world import nodes, run
from lab.world.nodes import Edr, NotAtHand
from tests.gateway.chain.nodes import result, running


def test_a_client_that_is_not_at_hand_is_named_and_nothing_was_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nodes, "programs", lambda: tmp_path)
    monkeypatch.setenv("PATH", "")

    assert run.run(run.Options(["geth"], 1)) == 1

    assert "geth: not tried, because there is neither geth nor Go on this machine" in capsys.readouterr().out


def test_a_go_that_cannot_build_counts_as_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho 'no such module' >&2\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.setattr(nodes, "programs", lambda: tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NotAtHand, match="no such module"):
        nodes.install_geth()


def test_anvils_control_methods_reach_edr_under_its_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with running(result(True)) as node:
        monkeypatch.setattr(Edr, "url", node.url)
        rpc = Edr(tmp_path, tmp_path, block_time=1).rpc
        rpc.batch(
            [("anvil_setBalance", "0x00", "0x1"), ("anvil_mine", "0x2"), ("evm_mine",), ("eth_chainId",)]
        )

    assert node.methods == ["hardhat_setBalance", "hardhat_mine", "evm_mine", "eth_chainId"]
