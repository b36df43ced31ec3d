"""
`python -m lab bench --parts`: CPU time of the parts of accepting a call, beside their lower bounds.

Runs as a separate process with the service's settings in its environment. It accepts calls part by part, in batches of
several sizes, and whole requests through Django. The lower bound is the same work without any rule of the service: the
elliptic curve and the hash, the same number of bare round trips to PostgreSQL and the node, and a Django view without
middleware. All figures are CPU time of the calling thread, so the servers' work is not included.
"""

import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import django

from devstack.console import echo
from devstack.django_process import run_django
from devstack.files import read_json, write_json
from devstack.ports import free_port
from devstack.preparation import load_plan, prepare
from devstack.rpc import Rpc
from devstack.services.stack import start_services
from devstack.stack_file import described
from devstack.wallet import Wallet
from devstack.world.abi import calldata
from lab.bench.calls import signed_call

if TYPE_CHECKING:
    from gateway.chain.lsp25 import RelayCall
    from relay.services.accepting.together import Progress
    from users.models import User

BATCHES = (1, 4, 8)
_ROUNDS, _WARM_ROUNDS = 40, 5
_PATH = "/api/relay/execute"
_PAYLOAD = calldata("execute(uint256,address,uint256,bytes)", 0, f"0x{4096:040x}", 1, b"")
Costs = dict[str, dict[str, float]]


def bench_parts(path: Path) -> int:
    """Measure on temporary servers, print, and write the figures to `path`."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as name,
        start_services(Path(name), block_time=1) as services,
    ):
        folder = Path(name)
        prepared = prepare(services, folder, load_plan(), port=free_port(), block_time=1)
        prepared.seed()
        write_json(folder / "profiles-of-calls.json", {"profiles": described(prepared.profiles)})
        arguments = ("-m", "lab.bench.parts", str(folder), services.rpc_url)
        run_django(folder / "parts.log", prepared.environment, *arguments)
        figures = read_json(folder / "parts.json")
    echo("CPU milliseconds per call in one thread: each part, and its lower bound")
    for part, costs in figures["parts"].items():
        echo(f"  {part:34} " + "  ".join(f"{size}: {cost:.3f}" for size, cost in costs.items()))
    write_json(path, figures)
    echo(f"Written to {path}")
    return 0


class Calls:
    """Signed calls; profiles take turns and each call has its own channel."""

    def __init__(self, profiles: Sequence[dict[str, str]], rpc_url: str) -> None:
        self._wallets = [Wallet.of(profile, "", Rpc(rpc_url)) for profile in profiles]
        self._chain_id = int(Rpc(rpc_url).call("eth_chainId"), 16)
        self._channels = itertools.count(1)

    def bodies(self, count: int) -> list[tuple[str, dict[str, Any]]]:
        """Return this many profiles, each with the body of a request."""
        return [
            (
                wallet.profile_address,
                signed_call(wallet, _PAYLOAD, chain_id=self._chain_id, nonce=next(self._channels) << 128),
            )
            for wallet in self._wallets[:count]
        ]


def measure(folder: Path, rpc_url: str) -> dict[str, Any]:
    """Accept calls in every way and return the time of each part."""
    from django.utils import timezone

    from relay.services.fleet import relayers

    relayers.sync(now=timezone.now(), trusts_single_node=True)
    calls = Calls(read_json(folder / "profiles-of-calls.json")["profiles"], rpc_url)
    parts: Costs = {}
    for size in BATCHES:
        _add(parts, str(size), [_parts_of(calls.bodies(size)) for _ in range(_ROUNDS)])
    whole = median(_requests(calls))
    alone = sum(costs["1"] for name, costs in parts.items() if not name.startswith(" "))
    parts["request, token, limits, answer"] = {"1": whole - alone}
    parts["  a view of Django, no middleware"] = {"1": median(_plain_requests(calls))}
    return {"parts": parts, "python": sys.version.split()[0], "cores": os.cpu_count()}


def _add(parts: Costs, size: str, rounds: Sequence[dict[str, float]]) -> None:
    for name in rounds[0]:
        times = [one[name] for one in rounds[_WARM_ROUNDS:]]
        parts.setdefault(name, {})[size] = median(times) / int(size)


def _parts_of(bodies: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, float]:
    """Accept these calls in one batch; return the milliseconds of each part, each followed by its lower bound."""
    from relay.services.accepting import together

    users = [_user(profile) for profile, _ in bodies]
    calls = [_relay_call(body) for _, body in bodies]
    took: dict[str, float] = {}
    with _timed(took, "digest and controller"):
        begun = [_begin(user, call) for user, call in zip(users, calls, strict=True)]
    _least_of_recovery(took, begun)
    with _timed(took, "rows, a trip to the node, preflight"):
        _approve(begun)
    _least_of_reading(took)
    with _timed(took, "accept: slots, signatures, rows"):
        together.advance(begun, lambda: set(range(len(begun))))
    results = [one.result for one in begun]
    if not all(isinstance(result, str) for result in results):
        raise RuntimeError(f"not every call was accepted: {results}")
    _least_of_accepting(took, len(bodies))
    return took


def _approve(begun: "Sequence[Progress]") -> None:
    """Take the calls to where they wait for acceptance; only a profile's first call needs more than one pass."""
    from relay.services.accepting import together
    from relay.services.accepting.calls import Step

    while any(one.step in {Step.ROWS, Step.CHAIN, Step.ALONE} for one in begun):
        # No caller stays, so nothing is accepted.
        together.advance(begun, set)
        for one in begun:
            if one.step is Step.ALONE:
                one.resume()


@contextmanager
def _timed(took: dict[str, float], name: str) -> Iterator[None]:
    """Measure the CPU milliseconds of this thread in the block."""
    started = time.thread_time()
    yield
    took[name] = (time.thread_time() - started) * 1e3


def _user(profile: str) -> "User":
    from users.models import User

    return User.objects.get(profile_address=profile)


def _relay_call(body: dict[str, Any]) -> "RelayCall":
    from gateway.chain.lsp25 import RelayCall

    transaction = body["transaction"]
    return RelayCall(
        body["keyManagerAddress"],
        bytes.fromhex(transaction["abi"][2:]),
        bytes.fromhex(transaction["signature"][2:]),
        int(transaction["nonce"]),
        0,
    )


def _begin(user: "User", call: "RelayCall") -> "Progress":
    from django.utils import timezone

    from relay.services.accepting.calls import Caller, SubmittedCall
    from relay.services.accepting.submission import identify, story
    from relay.services.accepting.together import Progress

    submitted = SubmittedCall(
        Caller(user.pk, str(user.profile_address)), *identify(call=call), timezone.now()
    )
    return Progress(submitted, story(submitted))


def _least_of_recovery(took: dict[str, float], begun: "Sequence[Progress]") -> None:
    """Hash the call, recover the point, and hash it."""
    from coincurve import PublicKey
    from eth_hash.auto import keccak

    pieces = [
        (
            bytes.fromhex(one.call.identity.digest[2:]),
            one.call.signed.signature[:64] + bytes([one.call.signed.signature[64] - 27]),
        )
        for one in begun
    ]
    with _timed(took, "  the curve and two hashes"):
        for digest, signature in pieces:
            keccak(_PAYLOAD)
            point = PublicKey.from_signature_and_message(signature, digest, hasher=None)
            keccak(point.format(compressed=False)[1:])


def _least_of_reading(took: dict[str, float]) -> None:
    from django.db import connection

    from gateway.chain.client import get_chain_client

    connection.ensure_connection()
    session, client = connection.connection, get_chain_client()
    with _timed(took, "  a statement and a trip, both bare"):
        session.execute("SELECT 1").fetchone()
        client.chain_id()


def _least_of_accepting(took: dict[str, float], count: int) -> None:
    """Two statements in a transaction, and a signature and two hashes for each call."""
    from coincurve import PrivateKey
    from django.db import connection
    from eth_hash.auto import keccak

    key, session = PrivateKey(), connection.connection
    with _timed(took, "  two statements, the curve, two hashes"):
        with session.transaction():
            session.execute("SELECT 1").fetchone()
            session.execute("SELECT 1").fetchone()
        for _ in range(count):
            key.sign_recoverable(keccak(_PAYLOAD), hasher=None)
            keccak(_PAYLOAD)


def _requests(calls: Calls) -> Iterator[float]:
    """Yield the milliseconds of whole requests through Django, each a batch of one."""
    from django.core.wsgi import get_wsgi_application

    handler = get_wsgi_application()
    (profile, _), *_ = calls.bodies(1)
    token = _token(profile)
    for number in range(_ROUNDS):
        ((_, body),) = calls.bodies(1)
        result: list[Any] = []
        milliseconds = _answered(handler, _PATH, body, result, authorization=f"Bearer {token}")
        if "transactionHash" not in result[0]:
            raise RuntimeError(f"a request was refused: {result[0]}")
        if number >= _WARM_ROUNDS:
            yield milliseconds


def _plain_requests(calls: Calls) -> Iterator[float]:
    """Yield the same of a view that only reads the body."""
    from django.core.handlers.wsgi import WSGIHandler
    from django.test import override_settings

    with override_settings(MIDDLEWARE=[], ROOT_URLCONF="lab.bench.plain_view"):
        handler = WSGIHandler()
        for number in range(_ROUNDS):
            ((_, body),) = calls.bodies(1)
            milliseconds = _answered(handler, _PATH, body, [])
            if number >= _WARM_ROUNDS:
                yield milliseconds


def _answered(
    handler: Callable[..., Any], path: str, body: dict[str, Any], answers: list[Any], **headers: str
) -> float:
    from django.conf import settings
    from django.test import RequestFactory

    headers["host"] = urlsplit(settings.PUBLIC_URL).netloc
    request = RequestFactory().post(path, body, content_type="application/json", headers=headers)
    took: dict[str, float] = {}
    with _timed(took, "request"):
        response = handler(request.environ, lambda *_: None)
        text = b"".join(response)
        response.close()
    answers.append(json.loads(text))
    return took["request"]


def _token(profile: str) -> str:
    from django.utils import timezone

    from users.models import SignInSession
    from users.tokens import AccessToken

    now = timezone.now()
    session = SignInSession.objects.create(
        user=_user(profile), controller_address=profile, expires_at=now + timedelta(hours=1)
    )
    return str(AccessToken.for_session(session, now=now))


if __name__ == "__main__":
    django.setup()
    folder = Path(sys.argv[1])
    write_json(folder / "parts.json", measure(folder, sys.argv[2]))
