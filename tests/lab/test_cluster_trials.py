"""How `python -m lab cluster-test` counts what came of a fault."""

from pathlib import Path
from unittest import mock

from devstack.rpc import Rpc
from devstack.wallet import Wallet
from lab.chaos.traffic import Call
from lab.cluster import network, state
from lab.cluster.results import Results, Trial
from lab.cluster.trials import idle_since, longest_silence

_EXPOSITION = """\
gateway_periodic_task_period_seconds{task="often"} 10.0
gateway_periodic_task_period_seconds{task="never-again"} 5.0
gateway_periodic_task_period_seconds{task="daily"} 86400.0
gateway_periodic_task_succeeded_timestamp_seconds{task="often"} 1.7e+09
gateway_periodic_task_succeeded_timestamp_seconds{task="never-again"} 1.6e+09
gateway_relay_loop_stalled_seconds{loop="tracking"} 0.0
gateway_relay_loop_stalled_seconds{loop="broadcasting"} 0.0
gateway_relay_loop_succeeded_timestamp_seconds{loop="tracking"} 1.7e+09
"""


def test_tasks_without_success_since_the_fault_are_named() -> None:
    assert idle_since(_EXPOSITION, since=1_650_000_000) == ["broadcasting", "never-again"]


def test_a_primary_that_responds_only_once_is_found() -> None:
    # Each of the three hosts is asked in turn, and the second one is the primary in the second round.
    results = iter([False] * 4 + [True] + [False] * 4)
    cluster = mock.Mock()
    cluster.patroni.side_effect = lambda _: mock.Mock(is_primary=next(results))

    assert state.primary_of(cluster) == network.DATABASES[1]


def test_the_longest_silence_reaches_to_the_end() -> None:
    address, key = "0x" + "00" * 20, "0x" + "17" * 32
    wallet = Wallet(address, address, key, "http://127.0.0.1:1", Rpc("http://127.0.0.1:1"))
    accepted = [
        Call(wallet, 0, b"", b"", transaction_hash="0x1", answered_at=moment) for moment in (4.0, 3.0)
    ]
    refused = Call(wallet, 0, b"", b"", refusal="409", answered_at=8.0)

    assert longest_silence([*accepted, refused], began=0.0, ended=10.0) == 6.0


def test_rounds_are_added_up(tmp_path: Path) -> None:
    for lost in (0, 2):
        Results(tmp_path / "cluster.json").add("kill web", Trial("now", calls=5, lost=lost))

    results = Results(tmp_path / "cluster.json")
    assert results.times("kill web") == 2
    assert "| kill web | 2 | 10 |" in results.table(["kill web", "never tried"])
