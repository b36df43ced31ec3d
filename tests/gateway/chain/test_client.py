"""Which client a process gets."""

import os
from typing import Any

import pytest

from gateway.chain.client import JsonRpcChainClient, get_chain_client, set_chain_client
from gateway.chain.errors import NodeUnavailable
from tests.fakes.chain import FakeChain
from tests.gateway.chain.nodes import error, result, running


@pytest.fixture(autouse=True)
def no_client_left() -> Any:
    """Leave the process as it was."""
    set_chain_client(None)
    yield
    set_chain_client(None)


def test_the_settings_give_a_client_made_once(settings: Any) -> None:
    with running(error(-32005, "limit")) as bad, running(result("0x1069")) as good:
        settings.CHAIN_RPC_URLS = [bad.url, good.url]
        set_chain_client(None)
        assert get_chain_client().chain_id() == 4201
        assert get_chain_client() is get_chain_client()


def test_the_timeout_of_the_settings_is_used(settings: Any) -> None:
    settings.CHAIN_RPC_URLS = ["http://127.0.0.1:1"]
    settings.CHAIN_RPC_TIMEOUT_SECONDS = 1
    with pytest.raises(NodeUnavailable):
        get_chain_client().head()


def test_a_test_may_install_another_client() -> None:
    fake = FakeChain()
    set_chain_client(fake)
    assert get_chain_client() is fake
    set_chain_client(None)
    assert isinstance(get_chain_client(), JsonRpcChainClient)


def test_a_forked_process_opens_connections_of_its_own() -> None:
    before = get_chain_client()
    child = os.fork()
    if child == 0:
        os._exit(0 if get_chain_client() is not before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert get_chain_client() is before
