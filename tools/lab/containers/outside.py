"""What stands around the containers: a chain with profiles, a proxy that reads nginx's file, and wallets."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from devstack.console import step
from devstack.rpc import Rpc
from devstack.services.anvil import Anvil
from devstack.services.server import ServerFailed
from devstack.world.profiles import Profile, ProfilePlan
from devstack.world.world import World, load_world
from lab.chaos.proxies import Loop
from lab.rehearsals.balancer import Balancer

BLOCK_SECONDS = 2
_PROFILES = 2
# LUKSO's implementations, which the service and its signer trust from the start.
_PROFILE_CODE = "0x3024D38EA2434BA6635003Dc1BDC0daB5882ED4F"
_KEY_MANAGER_CODE = "0x2Fe3AeD98684E7351aD2D408A43cE09a738BF8a4"
_READ_SECONDS = 0.1


@contextmanager
def chain_at(address: str, directory: Path) -> Iterator[tuple[Anvil, World, Sequence[Profile]]]:
    """Run a chain at an address that containers reach, with LUKSO's implementations at their addresses and profiles."""
    anvil = Anvil(directory / "anvil", directory / "log", block_time=BLOCK_SECONDS, host=address)
    anvil.prepare()
    anvil.start()
    try:
        anvil.wait(60)
        with step("contracts and profiles"):
            rpc = Rpc(anvil.url)
            deployed = load_world(rpc, directory / "world.json")
            made = deployed.implementations
            for code_of, wanted in (
                (made.universal_profile, _PROFILE_CODE),
                (made.key_manager, _KEY_MANAGER_CODE),
            ):
                rpc.call("anvil_setCode", wanted, rpc.call("eth_getCode", code_of, "latest"))
            known = replace(made, universal_profile=_PROFILE_CODE, key_manager=_KEY_MANAGER_CODE)
            world = replace(deployed, implementations=known)
            profiles = world.create_profiles(*(ProfilePlan() for _ in range(_PROFILES)))
        yield anvil, world, profiles
    finally:
        with suppress(ServerFailed):
            anvil.stop()


@contextmanager
def proxy_of(file: Path, loop: Loop, balancer: Balancer) -> Iterator[None]:
    """Send requests to the port that the file names, as nginx does after each reload."""
    stopping, before = threading.Event(), [0]

    def follow() -> None:
        while not stopping.wait(_READ_SECONDS):
            text = file.read_text() if file.exists() else ""
            port = int(text.partition("127.0.0.1:")[2].partition(";")[0] or 0)
            if port and port != before[0]:
                balancer.put_in(port)
                balancer.take_out(before[0])
                before[0] = port

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
        balancer.close()
        loop.stop()
