"""How `cluster-throughput` compares numbers of hosts."""

from lab.cluster.throughput import Measured, table


def _measured(webs: int, web_ms: float, wrong: tuple[str, ...] = ()) -> Measured:
    cpu = {"web": web_ms, "relay worker": 1.0, "PostgreSQL": 2.0, "node": 1.0, "signer": 1.0, "Redis": 9.0}
    return Measured(webs, 1, 100.0, 40.0, 15.0 * webs, 20.0, cpu, 0.0, wrong)


def test_medians_are_compared_with_those_of_one_web_host() -> None:
    rounds = [_measured(1, ms) for ms in (4.0, 5.0, 9.0)] + [_measured(2, 6.0)]

    first, second = table(rounds).splitlines()[2:]
    assert first.endswith("| 5.0 | 1.0 | 2.0 | 1.0 | 1.0 | 10.0 | × 1.00 |")
    assert second.endswith("| 11.0 | × 1.10 |")


def test_a_round_whose_books_do_not_add_up_does_not_count() -> None:
    assert "| 10.0 | × 1.00 |" in table([_measured(1, 5.0), _measured(1, 90.0, ("calls not settled: 1",))])
