"""The chains of these tests: a fake one per test, and one real node per run with LUKSO's contracts."""

from collections.abc import Iterator

import pytest

from devstack.rpc import Rpc
from devstack.services.anvil import Anvil
from devstack.world.world import load_world
from gateway.chain.client import JsonRpcChainClient
from tests.fakes.chain import FakeChain
from tests.gateway.chain.worlds import ETHER, AnvilWorld, Setting, new_signer


@pytest.fixture(scope="session")
def anvil_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a fresh node that mines on demand only."""
    folder = tmp_path_factory.mktemp("anvil")
    node = Anvil(folder, folder / "log", block_time=None)
    node.start()
    try:
        node.wait()
        Rpc(node.url).call("evm_setAutomine", False)
        yield node.url
    finally:
        node.stop()


@pytest.fixture(scope="session")
def anvil_world(anvil_url: str, tmp_path_factory: pytest.TempPathFactory) -> AnvilWorld:
    """Return the world on the node, LUKSO's contracts included."""
    return AnvilWorld(load_world(Rpc(anvil_url), tmp_path_factory.mktemp("world") / "world.json"))


@pytest.fixture
def anvil(anvil_url: str, anvil_world: AnvilWorld) -> Setting:
    """Return the real chain with a fresh, funded relayer."""
    signer = new_signer()
    anvil_world.fund(ETHER, *signer.addresses())
    return Setting(anvil_world, JsonRpcChainClient([anvil_url], timeout_seconds=60), signer)


@pytest.fixture
def fake() -> Setting:
    """Return a fake chain with a fresh, funded relayer."""
    chain, signer = FakeChain(), new_signer()
    chain.fund(ETHER, *signer.addresses())
    return Setting(chain, chain, signer)


@pytest.fixture(params=["fake", "anvil"])
def chain(request: pytest.FixtureRequest) -> Setting:
    """Return one of both: what holds on the real chain holds on the fake one."""
    setting: Setting = request.getfixturevalue(request.param)
    return setting
