"""The addresses that the service refuses, the packages refuse too: money that is sent to one of them is lost."""

import json
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from credit_relay_client import Call

_ADDRESSES = json.loads((Path(__file__).parent / "addresses.json").read_text())
_REFUSALS = {"address-checksum", "invalid-request"}


@pytest.mark.parametrize("row", _ADDRESSES, ids=lambda row: repr(row["address"]))
@pytest.mark.django_db
def test_the_service_and_the_python_package_refuse_the_same_addresses(
    row: dict[str, Any],
) -> None:
    response = APIClient().post("/api/auth/nonce", {"address": row["address"]}, format="json")

    assert ({response.json().get("code")} & _REFUSALS or {None}) == {row["code"]}
    if row["code"] is None:
        assert Call(row["address"]).to == row["address"]
        return
    with pytest.raises(ValueError, match="^to: .*checksum" if row["code"] == "address-checksum" else "^to: "):
        Call(row["address"])


@pytest.mark.parametrize(
    ("member", "value"), [("value", "1"), ("value", 1.0), ("value", True), ("data", "0x12"), ("data", None)]
)
def test_a_member_of_another_type_is_named(member: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"^{member}: "):
        Call(_ADDRESSES[0]["address"], **{member: value})


@pytest.mark.parametrize("value", [-1, 2**256])
def test_a_value_of_more_than_256_bits_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match=r"^value: "):
        Call(_ADDRESSES[0]["address"], value)
