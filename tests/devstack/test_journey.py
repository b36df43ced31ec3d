"""The wallet journey believes the chain and nobody else."""

from pathlib import Path

import pytest

from devstack.demo_profiles import described
from devstack.journey import travel
from devstack.private_file import write_json
from devstack.services import Services
from devstack.world import Permission, ProfilePlan
from tests.devstack.stand_in import StandIn, serving


def journey(services: Services, folder: Path, **lies: object) -> int:
    """Make the journey with a new profile at a stand-in; return its result."""
    profile = services.world.create_profiles(ProfilePlan())[0]
    stand_in = StandIn(services, profile)
    for name, value in lies.items():
        setattr(stand_in, name, value)
    with serving(stand_in) as base_url:
        stack = {"base_url": base_url, "rpc_url": services.rpc_url, "profiles": described([profile])}
        write_json(folder / "stack.json", stack)
        return travel(folder / "stack.json")


def test_the_journey_succeeds_and_prints_the_figures_where_all_agree(
    services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journey(services, tmp_path) == 0
    printed = capsys.readouterr().out
    for word in (
        "signed in",
        "quota",
        "setData",
        "transfer",
        "relayer 0x",
        "key manager 0x",
        "gas",
        "refused",
    ):
        assert word in printed


def test_one_credit_too_many_ends_the_journey(
    services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journey(services, tmp_path, extra_credits=1) == 1
    assert "creditsUsed is" in capsys.readouterr().err


def test_a_repeat_that_is_not_answered_with_the_same_hash_ends_the_journey(
    services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert journey(services, tmp_path, same_hash=False) == 1
    assert "the journey failed" in capsys.readouterr().err


def test_a_service_that_is_away_ends_the_journey_without_a_trace(
    services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = services.world.create_profiles(ProfilePlan())[0]
    stack = {"base_url": "http://127.0.0.1:1", "rpc_url": services.rpc_url, "profiles": described([profile])}
    write_json(tmp_path / "stack.json", stack)
    assert travel(tmp_path / "stack.json") == 1
    assert "the journey failed" in capsys.readouterr().err


def test_permissions_are_listed_by_name() -> None:
    assert (Permission.SIGN | Permission.CALL).names == ["CALL", "SIGN"]
