"""Chains besides home: what the environment says of them, and the current chain of a thread."""

import secrets
import threading
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway.chain.client import get_chain_client, set_chain_client
from gateway.chain.config import chains, get_chain, home, on_chain
from gateway.chain.errors import ChainUnknown
from gateway.chain.further import ChainSettings
from gateway.chain_settings import further_chains, home_facts
from tests.fakes.chain import FakeChain


def _read(*listed: str, **variables: str) -> dict[int, ChainSettings]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return further_chains(listed, home=42, signer="local", keys=("home",), treasury_key="")


def _base(**variables: str) -> ChainSettings:
    least = {"CHAIN_8453_RPC_URLS": "https://one.example", "CHAIN_8453_CREDIT_WEI": str(10**9)}
    return _read("8453", **least | variables)[8453]


def test_a_known_chain_needs_its_nodes_and_a_price() -> None:
    base = _base()
    assert (base.name, base.coin, base.family, base.block_seconds) == ("Base", "ETH", "op-stack", 2)
    assert (base.quorum, base.confirmations, base.finality_blocks) == (1, 2, 450)
    assert base.relayer_keys == ("home",)


def test_a_chain_with_short_blocks_counts_more_of_them() -> None:
    assert _base(CHAIN_8453_BLOCK_SECONDS="0.25").confirmations == 16


def test_neither_nodes_nor_keys_are_shown() -> None:
    secret = secrets.token_hex(32)
    shown = repr(_base(CHAIN_8453_RPC_URLS=f"https://{secret}.example", CHAIN_8453_RELAYER_KEYS=secret))
    assert secret not in shown


@pytest.mark.parametrize(
    ("listed", "error"),
    [
        (["42"], "CHAINS lists 42, which is the home chain"),
        (["base"], "CHAINS must list the ids of chains"),
        (["324"], "CHAINS lists zkSync Era"),
        (["5000"], "CHAINS lists Mantle"),
        (["8453", "8453"], "CHAINS lists 8453 twice"),
        (["42161"], "CHAINS lists 42161, of the family arbitrum"),
    ],
)
def test_a_chain_that_cannot_be_served_is_refused_by_name(listed: list[str], error: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=error):
        _read(*listed, CHAIN_8453_RPC_URLS="https://one.example", CHAIN_8453_CREDIT_WEI="1")


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("RPC_URLS", "", "Set the environment variable CHAIN_8453_RPC_URLS"),
        ("CREDIT_WEI", "", "Set the environment variable CHAIN_8453_CREDIT_WEI"),
        ("FAMILY", "zksync", "CHAIN_8453_FAMILY must be one of"),
        ("BLOCK_SECONDS", "0", "CHAIN_8453_BLOCK_SECONDS must be a number of seconds"),
        ("BLOCK_SECONDS", "soon", "CHAIN_8453_BLOCK_SECONDS must be a number of seconds"),
    ],
)
def test_a_mistake_is_named_with_its_variable(name: str, text: str, error: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=error):
        _base(**{f"CHAIN_8453_{name}": text})


def test_an_unknown_chain_needs_a_coin_and_its_block_time() -> None:
    least = {"CHAIN_777_RPC_URLS": "https://one.example", "CHAIN_777_CREDIT_WEI": "1"}
    with pytest.raises(ImproperlyConfigured, match="CHAIN_777_BLOCK_SECONDS"):
        _read("777", **least)
    with pytest.raises(ImproperlyConfigured, match="CHAIN_777_COIN"):
        _read("777", **least, CHAIN_777_BLOCK_SECONDS="1")


def test_home_cannot_be_a_chain_of_another_fee_model() -> None:
    with pytest.raises(ImproperlyConfigured, match="CHAIN_ID is Mantle"):
        home_facts(5000)


@pytest.fixture
def base(settings: Any) -> int:
    settings.CHAINS = {8453: _base()}
    return 8453


def test_code_runs_on_home_unless_it_says_otherwise(base: int) -> None:
    assert [chain.id for chain in chains()] == [home().id, base]
    assert get_chain() is home()
    with on_chain(base):
        assert get_chain().currency == "ETH"
        with on_chain(home().id):
            assert get_chain() is home()
        assert get_chain().id == base
    assert get_chain() is home()


def test_another_thread_stays_on_home(base: int) -> None:
    seen = []
    with on_chain(base):
        thread = threading.Thread(target=lambda: seen.append(get_chain().id))
        thread.start()
        thread.join()
    assert seen == [home().id]


def test_an_unknown_chain_is_refused_with_the_chains_there_are(base: int) -> None:
    with pytest.raises(ChainUnknown) as refused, on_chain(base + 1):
        pass
    assert f"{home().id}, {base}" in refused.value.detail
    assert get_chain() is home()


def test_each_chain_has_its_own_client(base: int) -> None:
    here, there = FakeChain(), FakeChain()
    set_chain_client(here)
    set_chain_client(there, chain_id=base)
    try:
        assert get_chain_client() is here
        with on_chain(base):
            assert get_chain_client() is there
            with on_chain(home().id):
                assert get_chain_client() is here
    finally:
        set_chain_client(None)
        set_chain_client(None, chain_id=base)
