"""Functions as people write them: the selector of each form is that of the canonical signature, or none."""

import json
from typing import Any

import pytest
from eth_utils.abi import function_signature_to_4byte_selector

from sponsors.rules import functions
from sponsors.rules.functions import MOST_FUNCTIONS, NotAFunction, selectors_of


def entry(name: str, *inputs: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "inputs": list(inputs),
        "outputs": [],
        "stateMutability": "payable",
    }


def nested(depth: int) -> dict[str, Any]:
    return {"type": "tuple", "components": [nested(depth - 1)]} if depth else {"type": "bool"}


_ORDER = [{"name": "to", "type": "address"}, {"name": "ids", "type": "bytes32[2]"}]


@pytest.mark.parametrize(
    ("text", "signatures"),
    [
        ("mint(address,uint256)", ["mint(address,uint256)"]),
        ("function mint(address to, uint amount) external payable returns (bool)", ["mint(address,uint256)"]),
        ("  buy( (address to, bytes32[2] ids)[] orders , bool )", ["buy((address,bytes32[2])[],bool)"]),
        ("buy(tuple(address to, bytes32[2] ids) order)", ["buy((address,bytes32[2]))"]),
        ("claim()", ["claim()"]),
        ("deep(((((bool) a) b) c) d)", ["deep(((((bool)))))"]),
        ("setData", ["setData(bytes32,bytes)"]),
        (
            "burn",
            ["burn(address,uint256,bytes)", "burn(bytes32,bytes)"],
        ),
        (json.dumps(entry("mint", {"type": "address"}, {"type": "uint256"})), ["mint(address,uint256)"]),
        (
            json.dumps(
                [entry("buy", {"type": "tuple[]", "components": _ORDER}), {"type": "event", "name": "x"}]
            ),
            ["buy((address,bytes32[2])[])"],
        ),
    ],
)
def test_a_function_has_the_selector_of_its_canonical_signature(text: str, signatures: list[str]) -> None:
    assert selectors_of(text) == tuple(map(function_signature_to_4byte_selector, signatures))


@pytest.mark.parametrize(
    ("text", "selector"), [("", b""), (" 0x ", b""), ("0x760D9BBA", bytes.fromhex("760d9bba"))]
)
def test_a_selector_is_itself_and_nothing_is_a_transfer(text: str, selector: bytes) -> None:
    assert selectors_of(text) == (selector,)


@pytest.mark.parametrize(
    "text",
    [
        "frobnicate",
        "0x760d9b",
        "0x760d9bbaff",
        "mint(address",
        "mint(adress)",
        "mint(uint7)",
        "mint(address,)",
        "mint(uint256[0])",
        "mint(bool[]x)",
        "mint((bool)x)",
        "mınt(bool)",
        "mint(,address)",
        "mint(address))(",
        "(address)",
        "mint" + "(" * 5_000,
        "mint(" + "(" * 5 + "bool" + ")" * 6,
        "{}",
        "[]",
        "[1]",
        "[" * 9_000,
        json.dumps({"type": "event", "name": "x", "inputs": []}),
        json.dumps(entry("mint", {"type": "tuple"})),
        json.dumps(entry("mint", {"type": "address,uint256"})),
        json.dumps(entry("mint(bool),x", {"type": "bool"})),
        json.dumps(entry("mint", {"type": "bool),x(bool"})),
        json.dumps(entry("mint", {"type": "tuple),x(", "components": []})),
        json.dumps({"type": "function", "name": 1, "inputs": []}),
        json.dumps(entry("mint", nested(5))),
        json.dumps([entry(f"f{one}") for one in range(MOST_FUNCTIONS + 1)]),
    ],
)
def test_what_is_no_function_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(NotAFunction, match=r"\w.*\.$"):
        selectors_of(text)


@pytest.mark.parametrize("name", ["a" * 9, "uint" + "1" * 8, "bool|bool"])
def test_no_process_keeps_what_cannot_be_a_type(name: str) -> None:
    before = functions._canonical.cache_info()
    with pytest.raises(NotAFunction):
        selectors_of(f"mint({name})")
    assert functions._canonical.cache_info() == before
