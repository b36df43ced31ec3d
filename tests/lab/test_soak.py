"""How a soak judges its samples; the load itself takes half an hour and is not tested."""

import os
import socket
from collections import Counter

import pytest

from lab.bench.meter import SERVICE
from lab.chaos.links import Links
from lab.chaos.soak import Process, Sample, Soak, complaints
from lab.chaos.visits import path_of


def _soak(
    *,
    late_mb: float = 100.0,
    late_files: int = 20,
    late_links: int = 30,
    clients_after: int = 2,
    late_pid: int = 1,
) -> Soak:
    """A soak of one process for each part of the service, whose web process is another one late."""

    def sample(share: float, clients: int = 40) -> Sample:
        is_late = share > 0.5
        web = Process("web", 150.0, late_mb if is_late else 100.0, late_files if is_late else 20)
        others = {pid: Process(kind, 150.0, 100.0, 20) for pid, kind in enumerate(SERVICE[1:], 10)}
        links = {"node": late_links if is_late else 30}
        return Sample(share, {late_pid if is_late else 1: web, **others}, links, clients)

    return Soak(
        [sample(number / 20) for number in range(21)], without_load=[sample(0, 2), sample(1, clients_after)]
    )


def test_unchanged_figures_cause_no_complaint() -> None:
    soak = _soak(late_mb=104.9, late_files=25, late_links=35, clients_after=7)
    soak.answers = Counter({("/api/relay/execute", 200): 5, ("/api/user/executeCheckIn", 409): 2})
    assert complaints(soak) == []


@pytest.mark.parametrize(
    ("soak", "words"),
    [
        (_soak(late_mb=105.1), "web grows from 100.0 to 105.1 MB"),
        (_soak(late_files=26), "web has 26 open files"),
        (_soak(late_links=36), "36 connections to node, 30 early"),
        (_soak(clients_after=8), "8 connections of clients are left, 2 before"),
        (_soak(late_pid=2), "a process of the service ended"),
    ],
)
def test_growth_and_a_process_that_ended_are_complaints(soak: Soak, words: str) -> None:
    [complaint] = complaints(soak)
    assert words in complaint


@pytest.mark.parametrize(("status", "words"), [(503, "1 × 503"), (0, "1 × no response")])
def test_a_failed_response_is_a_complaint(status: int, words: str) -> None:
    soak = _soak()
    soak.answers = Counter({("/healthz", status): 1})
    assert complaints(soak) == [f"{words} from /healthz"]


def test_a_connection_open_only_at_the_server_belongs_to_no_client() -> None:
    """Clients may keep as many as they like; those they have closed are the server's to close."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        counts = [_counts(port)]
        client.close()
        counts.append(_counts(port))
        accepted.close()
        counts.append(_counts(port))
    (_, files, _), *_ = counts
    # Of clients, open files without those, and connections to the port.
    assert counts == [(1, files, 1), (0, files, 0), (0, files - 1, 0)]


def _counts(port: int) -> tuple[int, int, int]:
    links, pid = Links.now(), os.getpid()
    return links.clients_of(pid, port), links.files(pid, port), links.number_to({port}, {pid})


def test_paths_are_counted_without_possible_secrets() -> None:
    assert path_of("/api/postbacks/adgem/token?amount=1") == "/api/postbacks/adgem"
