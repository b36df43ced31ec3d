"""What a call does is named from its payload; what cannot be read has no name, and nothing makes the reader fail."""

import secrets

from eth_abi.abi import encode
from eth_utils.abi import function_signature_to_4byte_selector as selector
from hypothesis import given
from hypothesis import strategies as st

from relay.payloads import MOST_ACTIONS, Action, actions_of
from tests.factories import random_address
from tests.fakes.profiles import set_data, transfer


def _call(signature: str, *values: object) -> bytes:
    types = signature.partition("(")[2].rstrip(")")
    return selector(signature) + encode(types.split(",") if types else [], values)


def test_a_transfer_of_money_names_receiver_and_value() -> None:
    to, wei = random_address(), secrets.randbelow(10**20)

    assert actions_of(transfer(to, wei)) == [Action("send", to=to, value_wei=wei, recipient=to)]


def test_a_transfer_of_tokens_names_the_token_and_the_receiver() -> None:
    token, sender, receiver = random_address(), random_address(), random_address()
    data = _call("transfer(address,address,uint256,bool,bytes)", sender, receiver, 5, True, b"")

    assert actions_of(transfer(token, 0, data)) == [
        Action("call", to=token, method="transfer", recipient=receiver)
    ]


def test_an_unknown_method_has_no_name() -> None:
    target = random_address()

    assert actions_of(transfer(target, 3, b"\xff\xff\xff\xff")) == [Action("call", to=target, value_wei=3)]


def test_a_batch_names_its_first_actions() -> None:
    targets = [random_address() for _ in range(MOST_ACTIONS + 3)]
    count = len(targets)
    payload = selector("executeBatch(uint256[],address[],uint256[],bytes[])") + encode(
        ["uint256[]", "address[]", "uint256[]", "bytes[]"],
        [[0] * count, targets, list(range(count)), [b""] * count],
    )

    assert actions_of(payload) == [
        Action("send", to=to, value_wei=place, recipient=to)
        for place, to in enumerate(targets[: MOST_ACTIONS + 1])
    ]


def test_the_profiles_own_data_deployments_and_ownership() -> None:
    assert actions_of(set_data()) == [Action("write")]
    assert actions_of(_call("acceptOwnership()")) == [Action("manage", method="acceptOwnership")]
    deploys = selector("execute(uint256,address,uint256,bytes)") + encode(
        ["uint256", "address", "uint256", "bytes"], [1, "0x" + "00" * 20, 0, b"\x60"]
    )
    assert actions_of(deploys) == [Action("deploy")]
    assert actions_of(b"") == []


@given(st.sampled_from([transfer("0x" + "11" * 20, 5, b"\xa9\x05\x9c\xbb"), set_data()]), st.integers(0, 200))
def test_a_payload_that_is_cut_off_is_read_too(payload: bytes, length: int) -> None:
    assert len(actions_of(payload[:length])) <= 1


@given(st.binary(max_size=300), st.sampled_from([b"\x44\xc0\x28\xfe", bytes.fromhex("31858452"), b""]))
def test_no_payload_makes_the_reader_fail(body: bytes, head: bytes) -> None:
    assert len(actions_of(head + body)) <= MOST_ACTIONS + 1
