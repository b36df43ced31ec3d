"""Load: clients that post signed calls or plain requests as fast as they are answered."""

import json
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Empty, SimpleQueue

import urllib3

from devstack.bench.service import BenchService

_PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Request:
    """A request that is ready to be sent."""

    method: str
    path: str
    token: str | None = None
    body: bytes | None = None


@dataclass(frozen=True)
class Run:
    """What a run measured: answers per second, the median answer in milliseconds, repeats after 503."""

    clients: int
    answered: int
    seconds: float
    median_ms: float
    repeats: int

    @property
    def per_second(self) -> float:
        """Answers per second."""
        return self.answered / self.seconds


def send_all(base_url: str, requests: Sequence[Request], *, clients: int) -> Run:
    """Send all requests from `clients` connections; a 503 is repeated after its Retry-After."""
    queue: SimpleQueue[Request] = SimpleQueue()
    for request in requests:
        queue.put(request)
    pool = urllib3.PoolManager(maxsize=clients, block=True, retries=False, timeout=60)
    started = time.perf_counter()
    with ThreadPoolExecutor(clients) as threads:
        jobs = [threads.submit(_client, pool, base_url, queue) for _ in range(clients)]
        results = [job.result() for job in jobs]
    seconds = time.perf_counter() - started
    times = [taken for found, _ in results for taken in found]
    repeats = sum(again for _, again in results)
    return Run(clients, len(times), seconds, statistics.median(times) * 1e3, repeats)


def _client(
    pool: urllib3.PoolManager, base_url: str, queue: "SimpleQueue[Request]"
) -> tuple[list[float], int]:
    times: list[float] = []
    repeats = 0
    while True:
        try:
            request = queue.get_nowait()
        except Empty:
            return times, repeats
        headers = {"content-type": "application/json"}
        if request.token:
            headers["authorization"] = f"Bearer {request.token}"
        started = time.perf_counter()
        answer = pool.request(request.method, base_url + request.path, body=request.body, headers=headers)
        if answer.status == 503:
            time.sleep(float(answer.headers.get("retry-after", "1")))
            queue.put(request)
            repeats += 1
            continue
        if answer.status != 200:
            raise RuntimeError(f"{request.path} answered {answer.status}: {answer.data[:300]!r}")
        times.append(time.perf_counter() - started)


def relay_calls(stage: BenchService, *, count: int, first_channel: int) -> list[Request]:
    """Sign `count` transfers of nothing, spread over the wallets, each on a nonce channel of its own."""
    requests = []
    for number in range(count):
        wallet = stage.wallets[number % len(stage.wallets)]
        nonce = (first_channel + number) << 128
        body = wallet.signed(_payload(number), nonce=nonce)
        requests.append(Request("POST", "/api/relay/execute", wallet.api.token, json.dumps(body).encode()))
    return requests


def _payload(number: int) -> bytes:
    from devstack.world.abi import calldata

    return calldata("execute(uint256,address,uint256,bytes)", 0, "0x" + f"{number + 4096:040x}", 0, b"")


def wait_until_settled(stage: BenchService, *, count: int) -> float:
    """Return the seconds until `count` relay transactions have ended in all."""
    started = time.perf_counter()
    while stage.settled() < count:
        if time.perf_counter() - started > _PATIENCE_SECONDS:
            raise RuntimeError(f"{count - stage.settled()} calls were not settled in time")
        time.sleep(0.1)
    return time.perf_counter() - started
