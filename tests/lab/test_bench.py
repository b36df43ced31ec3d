"""The bench: its arithmetic, the client's reading of responses, what it signs, and one round on a real stack."""

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psycopg
import pytest
from eth_utils.address import to_checksum_address

from devstack.services.stack import Services
from devstack.wallet import Wallet
from lab.bench import hello, scenarios
from lab.bench import run as bench
from lab.bench.calls import post, signed_call
from lab.bench.client import answer_in, retry_after
from lab.bench.hello import hello_command
from lab.bench.load import Load, Response, Sent, percentile, send
from lab.bench.meter import Reading, command_of, kind_of, process_in
from lab.bench.options import add_bench_options
from lab.bench.report import ratios, spread, values_of
from lab.bench.rounds import Sample, steady_part
from lab.bench.run import Options
from lab.bench.scenarios import Size, in_turns, scenarios_of
from lab.bench.stack import Checkout, Stack, running_stack
from tests.journeys.waiting import until

_USED = {"web": 4.0, "relay worker": 1.0, "PostgreSQL": 2.0, "node": 3.0, "other": 9.0}


def _reading(at: float, **seconds: float) -> Reading:
    return Reading(at, seconds, machine=at)


def test_processor_time_is_counted_per_call_and_summed_as_the_service() -> None:
    used = Reading(12.0, {**_USED, "Redis": 1.0}, 30.0).since(Reading(2.0, {"web": 2.0}, 10.0))
    assert (used.at, used.machine) == (10.0, 20.0)
    each = used.per_call(1_000)
    assert each["web"] == 2.0
    assert each["other workers"] == 0.0
    assert each["service"] == 3.0
    assert each["service + PostgreSQL + node"] == 8.0


def test_the_signers_cpu_is_part_of_the_services(capsys: pytest.CaptureFixture[str]) -> None:
    assert kind_of(f"{sys.executable} -m signer ") == "signer"
    assert Reading(1.0, {"web": 1.0, "signer": 1.0}, 2.0).per_call(1_000)["service"] == 2.0
    parser = argparse.ArgumentParser()
    add_bench_options(parser)
    assert parser.parse_args(["--keys", "local,kms"]).keys == ["local", "kms"]
    for wrong in (
        ["--keys", "local,keystore,kms"],
        ["--keys", "pocket"],
        ["--keys", "kms", "--against", "x"],
    ):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
    assert "--keys" in capsys.readouterr().err


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, percent) for percent in (50, 99, 100)] == [50.0, 99.0, 100.0]
    assert percentile([7.0], 1) == 7.0
    assert percentile([], 50) == 0.0


def test_the_steady_part_leaves_out_start_and_tail() -> None:
    samples = [Sample(_reading(at, web=at), settled) for at, settled in ((0, 0), (4, 10), (9, 60), (11, 90))]
    times = [1.0, *[5.0] * 30, 9.5]
    sent = Sent(0.0, [Response(0.0, at, 200, "") for at in [*times, 10.0]], cpu_seconds=0.0, repeats=0)
    steady = steady_part(samples, sent)
    assert steady is not None
    assert [steady[f"{name}_per_second"] for name in ("accepted", "settled")] == [6.0, 10.0]
    # Five seconds for 30 calls accepted and 50 settled.
    assert (steady["seconds"], steady["cpu_ms"]["web"]) == (5, 125.0)
    assert steady_part(samples, replace(sent, answers=sent.answers[:2])) is None


def test_ratios_are_of_rounds_made_one_after_the_other() -> None:
    ratio = ratios([2.0, 9.0, 4.0], [1.0, 3.0, 4.0])
    assert ratio is not None
    assert (ratio.median, ratio.least, ratio.most) == (2.0, 1.0, 3.0)
    assert ratios([1.0], [0.0]) is None
    assert spread([3.0, 1.0, 2.0]).median == 2.0


def test_a_round_that_does_not_add_up_is_not_counted() -> None:
    rounds = [{"p50_ms": 1.0, "wrong": []}, {"p50_ms": 2.0, "wrong": ["calls that are not settled: 1"]}]
    assert values_of(rounds, ["p50_ms"]) == [1.0]
    assert values_of(rounds, ["steady", "seconds"]) == []


def test_only_calls_that_were_accepted_have_a_latency() -> None:
    results = [
        Response(1.0, 1.5, 200, ""),
        Response(1.0, 9.0, 409, '{"code": "relay-nonce-used"}'),
        Response(2.0, 3.0, 0, ""),
    ]
    figures = Sent(started=1.0, answers=results, cpu_seconds=0.03, repeats=2).figures()
    assert (figures["accepted"], figures["p50_ms"], figures["client_cpu_ms_per_call"]) == (1, 500.0, 10.0)
    assert figures["refused"] == {"409 relay-nonce-used": 1, "closed": 1}


@pytest.mark.parametrize(
    ("received", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", None),
        (b"HTTP/1.1 200 OK\r\nContent-Le", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", None),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            b"2\r\n{}\r\n0\r\n\r\n",
        ),
    ],
)
def test_a_response_is_parsed_once_it_is_complete(received: bytes, body: bytes | None) -> None:
    result = answer_in(received)
    assert (result[1] if result else None) == body


def test_the_wait_in_a_response_is_read() -> None:
    assert retry_after(b"http/1.1 503 x\r\nretry-after: 3\r\ncontent-length: 0") == 3.0


def test_a_process_is_read_whatever_its_name() -> None:
    fields = ["S", "7", *["0"] * 9, "100", "50", "30", "20", *["0"] * 30]
    process = process_in(f"42 (a) R 1 (b) {' '.join(fields)}\n")
    assert (process.pid, process.parent, process.seconds) == (42, 7, 2.0)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("python -m granian --interface wsgi gateway.wsgi:application", "web"),
        ("python -m celery -A gateway worker --queues relay --concurrency 4", "relay worker"),
        ("python -m celery -A gateway worker --queues relay,default", "other workers"),
        ("python -m celery -A gateway beat", "other workers"),
        ("/x/bin/postgres -D cluster", "PostgreSQL"),
        ("/x/bin/anvil --port 1", "node"),
        ("python -m stripe_double", "other"),
    ],
)
def test_a_process_belongs_to_a_component(command: str, kind: str) -> None:
    assert kind_of(command) == kind


@pytest.mark.parametrize("interface", ["wsgi", "asgi", "rsgi"])
def test_hello_world_is_served_by_the_products_own_command(interface: str) -> None:
    command = ["python", "-m", "granian", "--interface", interface, "--port", "80"]
    made = hello_command([*command, "gateway.serving:application"], port=81)
    assert made == [*command[:-1], "81", f"lab.bench.hello:{interface}_application"]
    assert hasattr(hello, f"{interface}_application")


@pytest.mark.parametrize(
    "command", [["python", "-m", "serve"], ["granian", "--interface", "x", "--port", "1", "a:b"]]
)
def test_no_hello_world_is_made_of_an_unknown_command(command: list[str]) -> None:
    with pytest.raises(RuntimeError, match="Cannot derive a hello-world"):
        hello_command(command, port=81)


def test_dashboards_come_last_and_unknown_scenarios_are_refused() -> None:
    names = [scenario.name for scenario in scenarios_of(["dashboard-1000", "many-8", "quota"])]
    assert names == ["many-8", "quota", "dashboard-1000"]
    with pytest.raises(RuntimeError, match="Unknown scenario few"):
        scenarios_of(["few-8"])


def test_rounds_of_compared_scenarios_alternate() -> None:
    names = ["many-8", "own-64", "sponsored-64", "own-half-64", "sponsored-half-64", "quota"]
    groups = [[scenario.name for scenario in group] for group in in_turns(scenarios_of(names))]
    assert groups == [names[:1], names[1:3], names[3:5], names[5:]]


def test_calls_are_signed_as_a_wallet_signs_them(services: Services) -> None:
    address = to_checksum_address("0x" + "5a" * 20)
    wallet = Wallet(address, address, "0x" + "17" * 32, "http://127.0.0.1:1", services.rpc)
    for nonce in (3, 7 << 128):
        expected = wallet.signed(b"\x01\x02", nonce=nonce)
        assert signed_call(wallet, b"\x01\x02", chain_id=services.chain_id, nonce=nonce) == expected
    expected = wallet.signed(b"\x01", nonce=3, validity=2**31)
    assert signed_call(wallet, b"\x01", chain_id=services.chain_id, nonce=3, validity=2**31) == expected


class _Double(ThreadingHTTPServer):
    """Responds to each request after a while with the next of its statuses, and 200 once they are used up."""

    daemon_threads = True

    def __init__(self, *statuses: int, seconds: float = 0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses, self.seconds, self.requests = list(statuses), seconds, 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Double

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.requests += 1
        time.sleep(self.server.seconds)
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("retry-after", "0")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@contextmanager
def _serving(server: _Double) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _requests(number: int) -> list[list[str]]:
    return [[post("http://127.0.0.1", "/", None, {})] * number]


def test_in_closed_loop_a_client_sends_after_each_response() -> None:
    with _serving(_Double(seconds=0.2)) as url:
        sent = send(url, Load(_requests(4), clients=2, seconds=60))
    assert len(sent.accepted) == 4
    assert all(result.milliseconds >= 200 for result in sent.accepted)
    assert sent.seconds >= 0.4


def test_in_open_loop_a_latency_counts_from_when_the_request_was_due() -> None:
    with _serving(_Double(seconds=0.2)) as url:
        sent = send(url, Load(_requests(4), clients=1, seconds=60, rate=20))
    # Due after 0, 50, 100 and 150 ms; one connection has them served after 200, 400, 600 and 800 at the earliest.
    times = sorted(result.milliseconds for result in sent.accepted)
    assert all(taken >= least for taken, least in zip(times, (199, 349, 499, 649), strict=True))


def test_a_run_ends_at_its_deadline_and_collects_pending_responses() -> None:
    def repeated() -> bool:
        server = _Double(seconds=0.05)
        with _serving(server) as url:
            sent = send(url, Load(_requests(1), clients=2, seconds=0.5, cycles=True))
        assert 1 <= server.requests == len(sent.accepted) < 30
        return server.requests > 1

    # On a busy machine the time may be over after the first.
    until("one request is repeated", repeated)


def test_a_call_is_repeated_after_503_but_never_after_a_closed_connection() -> None:
    server = _Double(503, 429, 200, 0, 409)
    with _serving(server) as url:
        sent = send(url, Load(_requests(4), clients=1, seconds=60))
    assert (len(sent.accepted), sent.repeats, sent.refusals) == (2, 2, {"closed": 1, "409": 1})
    assert server.requests == 6


@contextmanager
def _stack_for_load(checkout: Checkout) -> Iterator[Stack]:
    """Yield the running stack; nothing has happened on it yet, not even the journey."""
    with running_stack(checkout) as stack:
        assert len({profile["profile_address"] for profile in stack.described["profiles"]}) == 60
        assert len(stack.environment["RELAY_RELAYER_KEYS"].split(",")) == 16
        assert stack.environment["LOG_LEVEL"] == "WARNING"
        commands = [command_of(process.pid) for _, process in stack.meter.members()]
        for part in ("granian", "--queues relay ", "--queues default ", "gateway beat"):
            assert any(part in command for command in commands), commands
        with psycopg.connect(stack.database_url) as database:
            balances = database.execute("SELECT balance FROM credits_account").fetchall()
        assert balances == [(10**9,)] * 60
        yield stack


@pytest.mark.journey
def test_a_round_on_a_stack_for_load_is_settled_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "running_stack", _stack_for_load)
    monkeypatch.setattr(bench, "REST_SECONDS", 1.0)
    monkeypatch.setattr(scenarios, "HELLO_SECONDS", 0.2)
    options = Options(scenarios=("many-2",), size=Size(seconds=2, calls=40), results=tmp_path)
    assert bench.run(options) == 0
    (path,) = tmp_path.iterdir()
    (stack,) = json.loads(path.read_text())["stacks"]
    (figures,) = stack["rounds"]["many-2"]
    assert figures["settled"] == figures["accepted"] > 0
    assert all(figures["cpu_ms"][kind] > 0 for kind in ("web", "relay worker", "PostgreSQL", "node"))
    assert {process["component"] for process in stack["memory"]} >= {
        "web",
        "relay worker",
        "PostgreSQL",
        "node",
    }
