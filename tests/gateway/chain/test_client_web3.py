"""What the client reads in its own batches is what web3.py reads call by call."""

import random
from typing import Any

import pytest
from eth_typing import HexStr
from web3 import HTTPProvider, Web3

from gateway.chain.contracts import CONTRACT_ABI
from gateway.chain.lsp6 import ALL_PERMISSIONS, Permission, permissions_key
from signer.contracts import code_name
from tests.fakes.profiles import Controller, random_address, transfer
from tests.gateway.chain.worlds import ETHER, Setting


@pytest.fixture
def web3(anvil_url: str) -> Web3:
    """Return web3.py over the real node, with its own HTTP provider."""
    return Web3(HTTPProvider(anvil_url))


def _contract(web3: Web3, address: str) -> Any:
    return web3.eth.contract(address=Web3.to_checksum_address(address), abi=CONTRACT_ABI)


def test_a_relay_state_is_what_web3_reads(anvil: Setting, web3: Web3) -> None:
    permissions = ALL_PERMISSIONS | random.choice([0, Permission.REENTRANCY, Permission.SUPER_DELEGATECALL])
    profile = anvil.world.create_profile(Controller(permissions=permissions))
    channel, controller = random.getrandbits(60), profile.controller.address
    anvil.execute(anvil.call(profile, transfer(random_address(), 1), relay_nonce=channel << 128))
    (state,) = anvil.client.read_relay_states([anvil.query(profile, channel=channel)])
    account, manager = (
        _contract(web3, address) for address in (profile.profile_address, profile.key_manager_address)
    )
    block = web3.eth.get_block("latest")
    assert state.profile_code_name == code_name(bytes(web3.eth.get_code(account.address)))
    assert state.key_manager_code_name == code_name(bytes(web3.eth.get_code(manager.address)))
    assert state.owner == account.functions.owner().call()
    assert state.target == manager.functions.target().call()
    held = account.functions.getData(permissions_key(controller)).call()
    assert state.permissions == int.from_bytes(held, "big") == permissions
    assert state.relay_nonce == manager.functions.getNonce(controller, channel).call() == channel << 128 | 1
    assert (state.head.number, state.head.timestamp) == (block["number"], block["timestamp"])
    assert state.head.base_fee_wei == block["baseFeePerGas"]


def test_receipts_and_accounts_are_what_web3_reads(anvil: Setting, web3: Web3) -> None:
    profile = anvil.world.create_profile(balance_wei=ETHER)
    signed = anvil.execute(anvil.call(profile, transfer(random_address(), random.randrange(ETHER))))
    view = anvil.client.read_chain(
        transaction_hashes=[signed.transaction_hash], accounts=[anvil.relayer], confirmations=2
    )
    read, receipt = (
        view.receipts[signed.transaction_hash],
        web3.eth.get_transaction_receipt(HexStr(signed.transaction_hash)),
    )
    assert (read.block_number, read.block_hash) == (receipt["blockNumber"], receipt["blockHash"].to_0x_hex())
    assert (read.succeeded, read.gas_used) == (receipt["status"] == 1, receipt["gasUsed"])
    assert read.effective_gas_price_wei == receipt["effectiveGasPrice"]
    account, relayer = view.accounts[anvil.relayer], Web3.to_checksum_address(anvil.relayer)
    assert account.latest_nonce == web3.eth.get_transaction_count(relayer) == 1
    confirmed = web3.eth.get_transaction_count(relayer, view.head.number - 1)
    assert (account.confirmed_nonce, account.balance_wei) == (confirmed, web3.eth.get_balance(relayer))
