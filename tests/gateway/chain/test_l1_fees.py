"""What the OP stack charges besides gas: the formulas, and what a node really takes from the sender."""

import random
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from gateway.chain import responses
from gateway.chain.client import get_chain_client, set_chain_client
from gateway.chain.fees import Fees, bump
from gateway.chain.l1_fees import L1Prices, fastlz_size, operator_fee_wei
from gateway.chain.rpc import MalformedResponse
from tests.gateway.chain.op_stack import GWEI, OpStack, running_op_stack

_WORDS = st.integers(0, 2**64 - 1)
_PRICES = st.builds(
    L1Prices,
    st.integers(0, 1_000 * GWEI),
    st.integers(0, 1_000 * GWEI),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.booleans(),
)


@pytest.fixture(scope="module")
def op_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpStack]:
    with running_op_stack(tmp_path_factory.mktemp("op")) as running:
        yield running


def _payloads() -> list[bytes]:
    """Return data that compresses well, badly and not at all, of random lengths."""
    words = [secrets.token_bytes(4), bytes(28), bytes(12) + secrets.token_bytes(20), b"\xff" * 400]
    return [
        b"",
        secrets.token_bytes(random.randrange(1, 2_000)),
        b"".join(random.choice(words) for _ in range(random.randrange(1, 60))),
        bytes(random.randrange(3) for _ in range(random.randrange(1, 9_000))),
    ]


def test_a_transaction_costs_its_gas_and_the_extra_fee_to_the_wei(op_stack: OpStack) -> None:
    for data in _payloads():
        transaction_hash, cost = op_stack.send(data)
        receipt = op_stack.receipt(transaction_hash)
        assert receipt.extra_fee_wei
        assert receipt.cost_wei == cost
        [sent] = op_stack.client.read_sent(
            senders=[op_stack.address], from_block=receipt.block_number, to_block=receipt.block_number
        )
        assert sent.receipt == receipt


def test_the_extra_fee_is_that_of_its_own_block(op_stack: OpStack) -> None:
    data = secrets.token_bytes(500)
    first, cost = op_stack.send(data)
    op_stack.node.set_l1_prices(base_fee_wei=20 * GWEI, blob_base_fee_wei=20 * GWEI)
    second, dearer = op_stack.send(data)
    assert dearer > cost
    assert op_stack.receipt(second).cost_wei == dearer
    assert op_stack.receipt(first).cost_wei == cost


def test_the_newest_block_bounds_what_a_transaction_costs(op_stack: OpStack) -> None:
    for data in _payloads():
        fees = Fees(GWEI, 0, GWEI, op_stack.client.head().l1)
        transaction_hash, _ = op_stack.send(data)
        receipt = op_stack.receipt(transaction_hash)
        expected = fees.expected_cost_wei(gas=receipt.gas_used, data_bytes=len(data))
        highest = fees.highest_cost_wei(gas_limit=receipt.gas_used, data_bytes=len(data))
        assert 0 < (receipt.extra_fee_wei or 0) <= expected - receipt.gas_used * GWEI
        assert expected < highest


@pytest.mark.parametrize(("family", "reads_prices"), [("op-stack", True), ("ethereum", False)])
def test_the_service_reads_l1s_prices_where_a_chain_has_them(
    op_stack: OpStack, settings: Settings, family: str, reads_prices: bool
) -> None:
    settings.CHAIN_FAMILY, settings.CHAIN_ID = family, op_stack.node.chain_id
    settings.CHAIN_RPC_URLS = [op_stack.node.url]
    set_chain_client(None)
    assert (get_chain_client().head().l1 is not None) == reads_prices
    set_chain_client(None)


def test_other_chains_charge_gas_alone() -> None:
    fees = Fees(3 * GWEI, GWEI, 2 * GWEI)
    assert fees.expected_cost_wei(gas=10**6, data_bytes=1_000) == 2 * 10**6 * GWEI
    assert fees.highest_cost_wei(gas_limit=10**6, data_bytes=1_000) == 3 * 10**6 * GWEI
    assert fees.highest_extra_fee_wei(gas_limit=10**6, data_bytes=1_000, later_seconds=60) == 0


@given(st.integers(0, 3_000), _PRICES, st.integers(0, 10**7))
def test_no_content_costs_more_than_the_bound(size: int, prices: L1Prices, gas: int) -> None:
    # Random bytes do not compress, and no transaction without an access list has more of them beside its data.
    raw = secrets.token_bytes(140 + size)
    fee = prices.fee_wei(raw, gas_used=gas)
    assert fee <= prices.expected_fee_wei(data_bytes=size, gas=gas)


@given(_PRICES, st.integers(0, 10))
def test_the_highest_fee_follows_the_fastest_rise_of_l1(prices: L1Prices, blocks: int) -> None:
    raised = prices
    for _ in range(blocks):
        raised = replace(
            raised,
            base_fee_wei=raised.base_fee_wei * 9 // 8,
            blob_base_fee_wei=raised.blob_base_fee_wei * 9 // 8,
        )
    highest = prices.highest_fee_wei(data_bytes=600, gas_limit=10**6, l1_blocks=blocks)
    assert highest >= raised.expected_fee_wei(data_bytes=600, gas=10**6)
    assert highest >= prices.expected_fee_wei(data_bytes=600, gas=10**6)


def test_the_hold_covers_a_minute_and_what_a_quote_adds() -> None:
    prices = L1Prices(10 * GWEI, GWEI, 2_269, 1_055_762)
    fees = Fees(3 * GWEI, GWEI, 2 * GWEI, prices)
    assert fees.highest_extra_fee_wei(data_bytes=600, gas_limit=0) == prices.highest_fee_wei(
        data_bytes=600, gas_limit=0, l1_blocks=5
    )
    assert fees.highest_extra_fee_wei(
        data_bytes=600, gas_limit=0, later_seconds=25
    ) == prices.highest_fee_wei(data_bytes=600, gas_limit=0, l1_blocks=8)
    assert bump(fees, cap_wei=100 * GWEI) == Fees(27 * GWEI // 8, 9 * GWEI // 8, 17 * GWEI // 8, prices)


@given(_WORDS, _WORDS, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1))
def test_prices_are_read_from_the_words_that_nodes_use(
    base: int, blob: int, scalar: int, operator: int, footprint: int
) -> None:
    scalars = (scalar << 96) + (operator << 64) + secrets.randbits(64)
    packed = (footprint << 96) + (operator << 64) + base
    assert L1Prices.of_slots(base, scalars, blob, packed) == L1Prices(
        base, blob, scalar, operator, operator, base, is_jovian=footprint > 0
    )


@pytest.mark.parametrize(
    ("is_jovian", "fee"),
    [(False, 5_000_000 + 33_000 * 7_000 // 10**6), (True, 5_000_000 + 33_000 * 7_000 * 100)],
)
def test_the_operators_fee_follows_the_fork(is_jovian: bool, fee: int) -> None:
    charged = operator_fee_wei(gas=33_000, scalar=7_000, constant_wei=5_000_000, is_jovian=is_jovian)
    assert charged == fee
    prices = L1Prices(0, 0, 0, 0, 7_000, 5_000_000, is_jovian)
    assert prices.fee_wei(b"", gas_used=33_000) == fee


def test_the_size_of_what_does_not_compress_is_a_byte_more_for_each_32() -> None:
    assert [fastlz_size(bytes(range(size))) for size in (0, 1, 32, 33, 64)] == [0, 2, 33, 35, 66]
    assert fastlz_size(b"\x07" * 10_000) < 200


_RECEIPT: dict[str, Any] = {
    "transactionHash": "0x" + "ab" * 32,
    "blockNumber": "0x1",
    "blockHash": "0x" + "cd" * 32,
    "status": "0x1",
    "gasUsed": hex(50_000),
    "effectiveGasPrice": "0x3",
}
_ISTHMUS = {"l1Fee": "0x64", "operatorFeeScalar": hex(2_000), "operatorFeeConstant": "0x7"}


@pytest.mark.parametrize(
    ("members", "extra"),
    [
        ({}, None),
        ({"l1Fee": None}, None),
        ({"l1Fee": "0x64"}, 100),
        ({"l1Fee": "0x64", "operatorFeeScalar": None, "operatorFeeConstant": None}, 100),
        ({"L1FEE": "0x64", "operatorfeescalar": "0x0", "OperatorFeeConstant": "0x7"}, 107),
        (_ISTHMUS, 107 + 50_000 * 2_000 // 10**6),
        ({**_ISTHMUS, "daFootprintGasScalar": "0x190"}, 107 + 50_000 * 2_000 * 100),
        ({**_ISTHMUS, "daFootprintGasScalar": None}, 107 + 50_000 * 2_000 // 10**6),
    ],
)
def test_a_receipt_names_the_extra_fee_or_not(members: dict[str, Any], extra: int | None) -> None:
    receipt = responses.receipt({**_RECEIPT, **members})
    assert receipt is not None
    assert receipt.extra_fee_wei == extra
    assert receipt.cost_wei == 150_000 + (extra or 0)


@pytest.mark.parametrize("wrong", ["100", 100, "0x" + "f" * 64, {}])
def test_a_fee_that_is_no_amount_is_the_nodes_fault(wrong: object) -> None:
    with pytest.raises(MalformedResponse):
        responses.receipt({**_RECEIPT, "l1Fee": wrong})
