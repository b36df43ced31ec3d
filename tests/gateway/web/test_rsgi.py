"""The web process reads requests whole and responds to probes whatever its threads do; over real connections."""

import json
import os
import re
import resource
import select
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from devstack.files import PROJECT
from devstack.ports import free_port
from devstack.processes import Web
from tests.journeys.waiting import in_time, until

HOST = "Host: 127.0.0.1\r\n"
CLOSE = "Connection: close\r\n"
# As tests/gateway/web/serving.py has it.
_BODY_SECONDS = 1


class SlowWeb(Web):
    """A web process with two threads and room for three requests that wait."""

    def answers(self) -> bool:
        with closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0 and self.ask("GET /healthz").status == 200

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=120)

    def ask(self, line: str, headers: str = "", body: str = "") -> "Response":
        with closing(self.connect()) as connection:
            connection.sendall(f"{line} HTTP/1.1\r\n{HOST}{CLOSE}{headers}\r\n{body}".encode("latin-1"))
            return received(connection)

    def serves(self, line: str, headers: str = "", body: str = "") -> "Response":
        """Ask until a thread is free: one that has just responded may not have been given back yet."""

        def answered() -> "Response | None":
            response = self.ask(line, headers, body)
            return None if response.status == 503 else response

        free = until("a thread is free", answered)
        assert free
        return free


class Response:
    """A response as it came."""

    def __init__(self, text: str) -> None:
        head, _, self.body = text.partition("\r\n\r\n")
        self.status = int(head.split(" ")[1]) if head else 0
        self.headers: Mapping[str, str] = dict(
            line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line
        )


def received(connection: socket.socket) -> Response:
    text = b""
    while more := connection.recv(65_536):
        text += more
    return Response(text.decode("latin-1"))


@pytest.fixture(scope="module")
def polled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What requests wait for a change of: a file."""
    file = Path(tmp_path_factory.mktemp("polled")) / "status.json"
    file.write_text("1")
    return file


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, polled: Path) -> Iterator[SlowWeb]:
    """The process, whose database accepts connections and never responds."""
    with running(tmp_path_factory.mktemp("web"), POLLED_FILE=str(polled)) as server:
        yield server


@contextmanager
def running(folder: Path, *, to: Path | None = None, **environment: str) -> Iterator[SlowWeb]:
    """Run the process, whose database accepts connections and never responds; its log goes `to` this file."""
    with ExitStack() as parts:
        silent = parts.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.gateway.web.serving",
            "DATABASE_URL": f"postgresql://gateway@127.0.0.1:{silent.getsockname()[1]}/gateway",
            **environment,
        }
        server = SlowWeb(folder, environment, port=free_port(), processes=1)
        if to is not None:
            server.prefix = ["sh", "-c", f"exec \"$@\" > '{to}' 2>&1", "sh"]
        yield parts.enter_context(server.running())


def test_a_process_whose_threads_have_stalled_is_unhealthy_until_one_is_free(tmp_path: Path) -> None:
    polled = tmp_path / "polled"
    with running(tmp_path, POLLED_FILE=str(polled), WEB_STALLED_SECONDS="0.2") as web, ExitStack() as parts:
        assert web.ask("GET /healthz").status == 200
        connections = [parts.enter_context(closing(web.connect())) for _ in range(2)]
        for connection in connections:
            connection.sendall(f"GET /hold HTTP/1.1\r\n{HOST}{CLOSE}\r\n".encode())

        until("the probe fails", lambda: web.ask("GET /healthz").status == 503)
        assert json.loads(web.ask("GET /healthz").body) == {"status": "unavailable", "missing": "threads"}

        Path(f"{polled}.go").touch()
        until("the process is healthy again", lambda: web.ask("GET /healthz").status == 200)
        assert [received(connection).body for connection in connections] == ["waited"] * 2


def test_requests_and_probes_respond_while_nothing_reads_the_log(tmp_path: Path) -> None:
    unread = tmp_path / "unread"
    os.mkfifo(unread)
    reader = os.open(unread, os.O_RDONLY | os.O_NONBLOCK)
    with running(tmp_path, to=unread) as web:
        # Each writes a line, and the pipe holds 64 KiB.
        assert {web.serves("GET /no/such/page").status for _ in range(300)} == {404}
        assert web.ask("GET /healthz").status == 200
        assert select.select([reader], [], [], 0)[0] == [reader]
    os.close(reader)


def test_a_probe_waits_less_than_two_seconds_for_the_database(web: SlowWeb) -> None:
    with ThreadPoolExecutor(8) as callers:
        responses = in_time(lambda: list(callers.map(lambda _: web.ask("GET /readyz"), range(8))), seconds=3)

    assert {response.status for response in responses} == {503}
    body = json.loads(responses[0].body)
    assert (body["status"], body["missing"]) == ("unavailable", "database")
    assert body["parts"]["database"] == "does not respond"


def test_probes_respond_while_no_thread_is_free_and_further_requests_are_refused(
    web: SlowWeb, polled: Path
) -> None:
    go = Path(f"{polled}.go")
    go.unlink(missing_ok=True)
    line = f"GET /hold HTTP/1.1\r\n{HOST}{CLOSE}Origin: https://wallet.example\r\n\r\n".encode()
    with ExitStack() as parts:
        # Two are at work, and three wait.
        connections = [parts.enter_context(closing(web.connect())) for _ in range(6)]
        for connection in connections:
            connection.sendall(line)
        (sixth,) = answered(connections, 1)
        refused = received(sixth)
        assert web.ask("GET /healthz").status == 200
        go.touch()
        others = [received(connection) for connection in connections if connection is not sixth]

    assert (refused.status, json.loads(refused.body)["code"]) == (503, "service-unavailable")
    assert (refused.headers["retry-after"], refused.headers["content-type"]) == (
        "1",
        "application/problem+json",
    )
    assert refused.headers["x-request-id"] == json.loads(refused.body)["requestId"]
    assert [response.body for response in others] == ["waited"] * 5


def test_probes_respond_while_one_client_holds_thousands_of_idle_connections(web: SlowWeb) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with ExitStack() as parts:
        idle = [parts.enter_context(closing(web.connect())) for _ in range(2_200)]
        # Half of them have asked once, and keep the connection.
        for connection in idle[::2]:
            connection.sendall(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode())
        results = [web.ask("GET /healthz").status for _ in range(5)]
        still_open = sum(is_open(connection) for connection in idle)

    assert results == [200] * 5
    # They were not closed instead, which would have been another reason.
    assert still_open == 2_200


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(65_536) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_beyond_the_most_requests_in_progress_further_ones_are_refused_and_probes_are_not(
    web: SlowWeb,
) -> None:
    with ExitStack() as parts:
        slow = [parts.enter_context(closing(web.connect())) for _ in range(40)]
        for connection in slow:
            connection.sendall(f"POST /echo/ HTTP/1.1\r\n{HOST}{CLOSE}Content-Length: 5\r\n\r\nABC".encode())
        refused = until("a request is refused", lambda: refusal(web))
        assert web.ask("GET /healthz").status == 200

    assert refused
    assert json.loads(refused.body)["detail"] == "Too many requests are in progress."
    assert refused.headers["retry-after"] == "1"
    # The others have been served or have left.
    assert web.serves("GET /echo/").status == 200


def refusal(web: SlowWeb) -> Response | None:
    response = web.ask("GET /echo/")
    return response if response.status == 503 and "in progress" in response.body else None


def test_slow_bodies_take_no_thread_and_are_refused_in_the_end(web: SlowWeb) -> None:
    with ExitStack() as parts:
        slow = [parts.enter_context(closing(web.connect())) for _ in range(20)]
        for connection in slow:
            connection.sendall(f"POST /echo/ HTTP/1.1\r\n{HOST}{CLOSE}Content-Length: 5\r\n\r\nABC".encode())

        assert web.serves("GET /echo/").status == 200
        responses = [received(connection) for connection in slow]

    assert {response.status for response in responses} <= {408, 503}
    late = [json.loads(response.body) for response in responses if response.status == 408]
    assert late[0]["code"] == "request-timeout"


def test_a_body_in_chunks_is_read_whole(web: SlowWeb) -> None:
    def send() -> Response:
        with closing(web.connect()) as connection:
            head = f"POST /echo/ HTTP/1.1\r\n{HOST}{CLOSE}Content-Length: 6\r\n\r\n"
            for piece in (head[:30], head[30:], "ab", "cd", "ef"):
                connection.sendall(piece.encode())
                time.sleep(0.02)
            return received(connection)

    response = in_time(send, seconds=_BODY_SECONDS)
    assert (response.status, json.loads(response.body)["body"]) == (200, "abcdef")


def test_a_body_of_unknown_length_is_refused_and_one_that_is_too_long_is_not_read(web: SlowWeb) -> None:
    chunked = web.serves("POST /echo/", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n")
    assert (chunked.status, json.loads(chunked.body)["code"]) == (411, "length-required")

    with closing(web.connect()) as connection:
        connection.sendall(f"POST /echo/ HTTP/1.1\r\n{HOST}Content-Length: 10000000\r\n\r\n{{".encode())
        # Were the rest waited for, it would be 408.
        assert connection.recv(15) == b"HTTP/1.1 413 Pa"


@pytest.mark.parametrize(
    ("headers", "status"), [("Content-Length: 3000000", 413), ("Transfer-Encoding: chunked", 411)]
)
def test_a_client_can_finish_sending_a_refused_body_and_read_the_error(
    web: SlowWeb, headers: str, status: int
) -> None:
    body = b"x" * 3_000_000
    if status == 411:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)

    def send() -> int:
        with closing(web.connect()) as connection, suppress(ConnectionError):
            connection.sendall(f"POST /echo/ HTTP/1.1\r\n{HOST}{CLOSE}{headers}\r\n\r\n".encode())
            # A connection that was closed meanwhile would refuse the later pieces.
            for start in range(0, len(body), 65_536):
                connection.sendall(body[start : start + 65_536])
                time.sleep(0.005)
            return received(connection).status
        return 0

    assert in_time(send, seconds=_BODY_SECONDS) == status


def test_a_slow_client_gets_a_timeout_error(web: SlowWeb) -> None:
    def is_timed_out() -> bool:
        with closing(web.connect()) as connection, suppress(ConnectionError):
            connection.sendall(f"POST /echo/ HTTP/1.1\r\n{HOST}{CLOSE}Content-Length: 50\r\n\r\n".encode())
            for _ in range(15):
                connection.sendall(b"x")
                time.sleep(0.1)
            return received(connection).status == 408
        return False

    # Where the machine stalled for longer than the client may send, the connection is gone.
    until("the client reads 408", is_timed_out, patience=60)


def test_a_truncated_body_is_not_accepted(web: SlowWeb) -> None:
    with closing(web.connect()) as connection:
        connection.sendall(f"POST /echo/ HTTP/1.1\r\n{HOST}{CLOSE}Content-Length: 50\r\n\r\nabc".encode())
        connection.shutdown(socket.SHUT_WR)
        assert received(connection).status in {0, 400}
    assert "Traceback" not in web.log_path.read_text()


def test_a_header_with_an_underscore_does_not_pass_for_one_with_a_hyphen(web: SlowWeb) -> None:
    headers = "X-Forwarded-For: 203.0.113.1\r\nX_Forwarded_For: 6.6.6.6\r\nX-Forwarded-For: 203.0.113.2\r\n"
    cookies = "Cookie: a=1\r\nCookie: b=2\r\nContent-Type: text/plain\r\n"
    meta = json.loads(web.serves("GET /echo/", headers + cookies).body)["meta"]

    assert meta["HTTP_X_FORWARDED_FOR"] == "203.0.113.1,203.0.113.2"
    assert (meta["HTTP_COOKIE"], meta["CONTENT_TYPE"]) == ("a=1;b=2", "text/plain")
    assert (meta["REMOTE_ADDR"], meta["SERVER_NAME"]) == ("127.0.0.1", "127.0.0.1")
    assert "SECRET_KEY" not in meta


@pytest.mark.parametrize("value", [b"\xfc", "ü".encode()])
def test_a_header_that_is_not_ascii_does_not_pass_for_none(web: SlowWeb, value: bytes) -> None:
    def send() -> Response:
        with closing(web.connect()) as connection:
            head = f"GET /echo/ HTTP/1.1\r\n{HOST}{CLOSE}Idempotency-Key: ".encode()
            connection.sendall(head + value + b"\r\n\r\n")
            return received(connection)

    meta = json.loads(in_time(send, seconds=_BODY_SECONDS).body)["meta"]
    assert meta["HTTP_IDEMPOTENCY_KEY"] == ""


def test_path_and_query_arrive_as_they_were_sent(web: SlowWeb) -> None:
    result = json.loads(web.serves("GET /echo/caf%C3%A9/a%20b?q=%C3%A9&r=a+b").body)

    assert result["path"] == "/echo/café/a b"
    assert result["meta"]["QUERY_STRING"] == "q=%C3%A9&r=a+b"


def test_a_response_in_chunks_arrives_whole(web: SlowWeb) -> None:
    numbers = re.findall(r"\d{5} ", web.serves("GET /pieces").body)

    assert len(numbers) == 100_000
    assert numbers[::1_000] == [f"{number:05d} " for number in range(100)]


def test_a_client_that_disconnects_during_a_response_occupies_no_thread(web: SlowWeb) -> None:
    for _ in range(4):
        with closing(web.connect()) as connection:
            connection.sendall(f"GET /pieces HTTP/1.1\r\n{HOST}\r\n".encode())
            connection.recv(10)
        assert "first" in web.serves("GET /fail").body

    assert web.serves("GET /echo/").status == 200


def test_clients_that_do_not_read_their_streams_leave_threads_for_others(web: SlowWeb) -> None:
    with closing(web.connect()) as unread:
        unread.sendall(f"GET /endless HTTP/1.1\r\n{HOST}\r\n".encode())
        assert unread.recv(10)
        with closing(web.connect()) as second:
            second.sendall(f"GET /endless HTTP/1.1\r\n{HOST}{CLOSE}\r\n".encode())
            assert second.recv(12) == b"HTTP/1.1 503"
        assert web.serves("GET /echo/").status == 200
    assert web.serves("GET /pieces").status == 200


@contextmanager
def polls(web: SlowWeb, *users: int, seconds: float = 60) -> Iterator[list[socket.socket]]:
    """Connections with a request each that waits for another response than the present one."""
    with ExitStack() as parts:
        waiting = [parts.enter_context(closing(web.connect())) for _ in users]
        for connection, user in zip(waiting, users, strict=True):
            line = f"GET /poll?user={user}&seconds={seconds} HTTP/1.1"
            connection.sendall(f"{line}\r\n{HOST}{CLOSE}\r\n".encode())
            # The request before it has been taken up by then.
            assert web.serves("GET /echo/").status == 200
        yield waiting


def test_one_query_notifies_all_waiters_of_a_change(web: SlowWeb, polled: Path) -> None:
    checks = Path(f"{polled}.checks")
    with polls(web, 1, 1, 2, 2, 3) as waiting:
        # Both threads are free for others.
        assert [web.serves("GET /wait?seconds=0.1").body for _ in range(3)] == ["waited"] * 3
        # At once, so that no reader finds it empty.
        (new := polled.with_suffix(".new")).write_text("22")
        new.replace(polled)
        responses = [received(connection) for connection in waiting]
    assert [
        (response.status, response.body, response.headers["content-length"]) for response in responses
    ] == [(200, "22", "2")] * 5
    assert len({response.headers["x-request-id"] for response in responses}) == 5
    assert set(checks.read_text().split()) == {"1"}
    count = len(checks.read_text())
    time.sleep(0.8)
    assert len(checks.read_text()) == count


def test_without_a_change_the_current_state_is_returned_at_the_timeout(web: SlowWeb, polled: Path) -> None:
    started = time.monotonic()
    with polls(web, 1, seconds=0.7) as (connection,):
        response = received(connection)
    assert (response.status, response.body) == (200, polled.read_text())
    assert 0.6 < time.monotonic() - started < 30


def test_a_request_with_a_body_waits_like_any_other(web: SlowWeb, polled: Path) -> None:
    response = web.serves("GET /poll?user=1&seconds=0.1", "Content-Length: 2\r\n", "{}")
    assert (response.status, response.body) == (200, polled.read_text())


def test_waiters_beyond_the_limit_are_refused_until_some_have_left(web: SlowWeb) -> None:
    with polls(web, 1, 1, 1, 1, 1, 2, 3) as waiting:
        refusals = [received(connection) for connection in answered(waiting, 2)]
        assert {(refusal.status, json.loads(refusal.body)["code"]) for refusal in refusals} == {
            (429, "too-many-requests"),
            (503, "service-unavailable"),
        }
        assert {refusal.headers["retry-after"] for refusal in refusals} == {"1", "5"}
    # That they have left is noticed within a moment, and leaves their places to others.

    def all_may_wait() -> bool:
        with polls(web, 1, 1, 1, 1, 2, seconds=0.1) as waiting:
            return [received(connection).status for connection in waiting] == [200] * 5

    until("there is room for five again", all_may_wait)


def answered(connections: list[socket.socket], number: int) -> list[socket.socket]:
    """Wait for this number of the connections to be served, and return them."""
    return (
        until(
            f"{number} are answered",
            lambda: ready if len(ready := select.select(connections, [], [], 1)[0]) >= number else None,
        )
        or []
    )


def test_every_error_of_the_server_and_the_service_is_json(web: SlowWeb) -> None:
    assert web.ask("GET /broken").status == 500
    # And half of a response.
    web.ask("GET /fail")

    def failures() -> list[str]:
        lines = map(json.loads, web.log_path.read_text().splitlines())
        return [line["exception"].splitlines()[-1] for line in lines if "exception" in line]

    until("both errors are logged", lambda: len(failures()) > 1)
    assert any(failure.startswith("AttributeError: 'str' object") for failure in failures())
    lines = [json.loads(line) for line in web.log_path.read_text().splitlines()]
    assert {line["logger"] for line in lines} >= {"_granian", "gateway.web.rsgi", "gateway.requests"}
    assert all(line["timestamp"] and line["level"] and line["event"] for line in lines)


def test_a_service_that_cannot_start_prints_one_line_with_the_cause(tmp_path: Path) -> None:
    command = Web(tmp_path, {}, port=free_port(), processes=1).command()
    command.remove("--respawn-failed-workers")
    environment = {"DJANGO_SETTINGS_MODULE": "gateway.absent"}
    said = subprocess.run(
        command, env=environment, cwd=PROJECT, capture_output=True, check=False, timeout=600
    )
    lines = [json.loads(line) for line in (said.stdout + said.stderr).splitlines()]
    (failure,) = (line for line in lines if "exception" in line)
    assert failure["level"] == "critical"
    assert "ModuleNotFoundError: No module named 'gateway.absent'" in failure["exception"]


def test_a_process_that_ends_releases_all_waiters_at_once(web: SlowWeb, polled: Path) -> None:
    """The last one, since the process is gone afterwards."""
    with polls(web, 1, 2) as waiting:
        started = time.monotonic()
        web.terminate()
        responses = [received(connection) for connection in waiting]
    assert [(response.status, response.body) for response in responses] == [(200, polled.read_text())] * 2
    web.stop(patience=120)
    # The two would have waited for a minute.
    assert time.monotonic() - started < 50
