"""What a soak says of its samples; the load itself takes half an hour and is no test."""

from collections import Counter

import pytest

from devstack.bench.meter import SERVICE
from devstack.chaos.soak import Process, Sample, Soak, complaints
from devstack.chaos.visits import path_of


def _soak(*, late_mb: float = 100.0, late_files: int = 20, late_clients: int = 30, late_pid: int = 1) -> Soak:
    """A soak of one process for each part of the service, whose web process is another one late."""

    def sample(share: float) -> Sample:
        is_late = share > 0.5
        web = Process("web", 150.0, late_mb if is_late else 100.0, late_files if is_late else 20)
        others = {pid: Process(kind, 150.0, 100.0, 20) for pid, kind in enumerate(SERVICE[1:], 10)}
        clients = late_clients if is_late else 30
        return Sample(share, {late_pid if is_late else 1: web, **others}, clients, 20)

    return Soak([sample(number / 20) for number in range(21)])


def test_what_stays_as_it_was_is_no_reason_to_complain() -> None:
    soak = _soak(late_mb=104.9, late_files=25, late_clients=35)
    soak.answers = Counter({("/api/relay/execute", 200): 5, ("/api/user/executeCheckIn", 409): 2})
    assert complaints(soak) == []


@pytest.mark.parametrize(
    ("soak", "words"),
    [
        (_soak(late_mb=105.1), "web grows from 100.0 to 105.1 MB"),
        (_soak(late_files=26), "web has 26 open files"),
        (_soak(late_clients=36), "PostgreSQL has 36 connections"),
        (_soak(late_pid=2), "a process of the service ended"),
    ],
)
def test_what_grows_or_ends_is(soak: Soak, words: str) -> None:
    [complaint] = complaints(soak)
    assert words in complaint


@pytest.mark.parametrize(("status", "words"), [(503, "1 × 503"), (0, "1 × no answer")])
def test_so_is_an_answer_that_failed(status: int, words: str) -> None:
    soak = _soak()
    soak.answers = Counter({("/healthz", status): 1})
    assert complaints(soak) == [f"{words} from /healthz"]


def test_paths_are_counted_without_what_may_be_secret() -> None:
    assert path_of("/api/postbacks/adgem/token?amount=1") == "/api/postbacks/adgem"
