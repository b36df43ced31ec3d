"""The wallet journey believes the chain, the payment provider's records and nobody else."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest

from devstack.files import write_json
from devstack.journey.figures import months_before
from devstack.journey.travelling import travel
from devstack.services.stack import Services
from devstack.stack_file import described
from devstack.stripe.billing.renewals import period_start
from devstack.world.permissions import Permission
from devstack.world.profiles import ProfilePlan
from tests.devstack.stand_in import StandIn, serving

# A good journey waits as long as a busy machine needs; one that must fail is not kept waiting for it.
_LEAD, _PATIENCE, _HURRY = 3, 120, 5
_FIRST_TIME = "the provider's clock begins two months ago"
_CUT_SHORT = "an earlier journey was cut short"


@contextmanager
def stack(services: Services, folder: Path) -> Iterator[tuple[StandIn, Path]]:
    """Yield a stand-in with a new profile at an untouched provider, and the file that describes it."""
    services.stripe.controls.reset()
    profile = services.world.create_profiles(ProfilePlan())[0]
    stand_in, path = StandIn(services, profile), folder / "stack.json"
    with serving(stand_in) as base_url:
        write_json(path, described_stack(services, base_url, stand_in))
        yield stand_in, path


def described_stack(services: Services, base_url: str, stand_in: StandIn) -> dict[str, object]:
    """Return what the journey reads of a stack's description."""
    return {
        "base_url": base_url,
        "rpc_url": services.rpc_url,
        "stripe_url": services.stripe.url,
        "stripe_secret_key": services.stripe.secret_key,
        "profiles": described([stand_in.profile]),
        "networks": stand_in.booth.described(base_url),
    }


def journey(stand_in: StandIn, path: Path, *, patience: float = _PATIENCE, lead: int = _LEAD) -> int:
    """Make the journey with a short lead."""
    return travel(path, lead=lead, patience=patience, manage=stand_in.booth.manage)


def test_the_journey_succeeds_and_prints_the_figures_where_all_agree(
    services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stack(services, tmp_path) as (stand_in, path):
        assert journey(stand_in, path) == 0
    printed = capsys.readouterr().out
    for word in ("signed in", "setData", "transfer", "relayer 0x", "key manager 0x", "gas", "refused"):
        assert word in printed
    for word in ("customer cus_", "402", "card captured: seti_", "subscribed: sub_", "invoice in_"):
        assert word in printed
    for word in ("levelplay (VIDEO_ADS) is answered", ":OK'", "held for 1 h", "reverses it", "rows imported"):
        assert word in printed
    for word in ("told again", "403", "checked in: EXPERIENCE 7", "levelled up", "5.00%", "came back"):
        assert word in printed
    for word in (_FIRST_TIME, "a month has passed", "the period has ended", "total 0, reset -1"):
        assert word in printed


@pytest.mark.parametrize(
    "drop", ["CREDITS", "BONUS_SURVEYS_CREDITS", "BONUS_PUSH_ADS_CREDITS", "BONUS_CREDITS_BACK"]
)
def test_whatever_drops_is_found_where_it_took_effect(
    services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str], drop: str
) -> None:
    with stack(services, tmp_path) as (stand_in, path):
        stand_in.booth.drop = drop
        assert journey(stand_in, path, lead=-2 * 86_400) == 0
    assert f"checked in: {drop}" in capsys.readouterr().out


def test_months_that_were_over_sooner_than_reckoned_are_as_good(services: Services, tmp_path: Path) -> None:
    with stack(services, tmp_path) as (stand_in, path):
        assert journey(stand_in, path, lead=-2 * 86_400) == 0


def test_two_months_begun_at_the_reckoned_moment_end_at_most_two_days_early() -> None:
    for day in range(4 * 366):
        moment = 1_767_225_600 + day * 86_400 + secrets.randbelow(86_400)
        end = period_start(months_before(moment, 2), "month", 1, 2)
        assert 0 <= moment - end <= 2 * 86_400


def test_a_second_journey_begins_a_new_subscription_and_lets_time_be(
    services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stack(services, tmp_path) as (stand_in, path):
        assert journey(stand_in, path) == 0
        capsys.readouterr()
        assert journey(stand_in, path) == 0
    printed = capsys.readouterr().out
    assert "subscribed: sub_" in printed
    assert "no attempt is left today; the next one comes at tomorrow" in printed
    assert _FIRST_TIME not in printed
    assert _CUT_SHORT not in printed


def test_a_journey_ends_what_one_that_was_cut_short_has_left(
    services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stack(services, tmp_path) as (stand_in, path):
        stand_in.extra_credits = 1
        assert journey(stand_in, path, patience=_HURRY) == 1
        stand_in.extra_credits = 0
        assert journey(stand_in, path) == 0
    assert _CUT_SHORT in capsys.readouterr().out


@pytest.mark.parametrize(
    ("whose", "lie", "words"),
    [
        ("stand_in", {"extra_credits": 1}, "creditsUsed is"),
        ("stand_in", {"same_hash": False}, "403 x"),
        ("booth", {"taken_twice": True}, "the dashboard after repeated postbacks is"),
        ("booth", {"believes_all": True}, "a forged postback is answered is 200"),
        ("booth", {"new_drop_each_time": True}, "the dashboard after a repeated check-in is"),
        ("booth", {"commitment": "0" * 64}, "the commitment of"),
        ("booth", {"bonus": Decimal("0.06")}, "the newest earning is"),
        ("booth", {"shown_too_much": 1}, "the newest earning is"),
        ("booth", {"keeps_back": True}, "what came back of the cost is"),
        ("booth", {"hides": "STAFF_ADJUSTMENT"}, "where the histories begin is 50000, not 0"),
        ("booth", {"hides": "SUBSCRIBED_PAYOUT"}, "that a row ends at"),
        ("till", {"rate": 999}, "(quota, totalQuota, resetDate) is"),
        ("till", {"sign": "€"}, "subscriptionAmount is"),
        ("till", {"dates": -1}, "(quota, totalQuota, resetDate) is"),
    ],
)
def test_a_wrong_figure_ends_the_journey_and_is_named(
    services: Services,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    whose: str,
    lie: dict[str, object],
    words: str,
) -> None:
    with stack(services, tmp_path) as (stand_in, path):
        liar = {"stand_in": stand_in, "till": stand_in.till, "booth": stand_in.booth}[whose]
        for name, value in lie.items():
            setattr(liar, name, value)
        assert journey(stand_in, path, patience=_HURRY) == 1
    complaint = capsys.readouterr().err
    assert "the journey failed" in complaint
    assert words in complaint


def test_a_provider_whose_clock_was_moved_ahead_ends_the_journey(
    services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stack(services, tmp_path) as (stand_in, path):
        stand_in.till.customer({})
        services.stripe.controls.advance(3600)
        assert journey(stand_in, path, patience=_HURRY) == 1
    assert "ahead of the real one" in capsys.readouterr().err


def test_a_service_that_is_away_ends_the_journey_without_a_trace(
    services: Services, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stack(services, tmp_path) as (stand_in, path):
        write_json(path, described_stack(services, "http://127.0.0.1:1", stand_in))
        assert journey(stand_in, path, patience=_HURRY) == 1
    assert "the journey failed" in capsys.readouterr().err


def test_permissions_are_listed_by_name() -> None:
    assert (Permission.SIGN | Permission.CALL).names == ["CALL", "SIGN"]
