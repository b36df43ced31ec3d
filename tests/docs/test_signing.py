"""The signing guide and the Python client agree with the vectors and with the service."""

import json
import re
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from credit_relay_client import RelayCall, personal_sign, quota_message, sign_hash
from gateway.chain import lsp25, mistakes
from gateway.chain.signatures import quota_digests
from tests.docs.pages import DOCS, rows

VECTORS = json.loads((DOCS / "examples/vectors.json").read_text())
CONTROLLER = Account.from_key(VECTORS["private_key"])
GUIDE = (DOCS / "signing.md").read_text()


@pytest.mark.parametrize("vector", VECTORS["lsp25"], ids=lambda vector: f"chain {vector['chain_id']}")
def test_the_client_makes_the_hash_and_the_signature_of_the_vectors(vector: dict[str, Any]) -> None:
    call = RelayCall(
        chain_id=vector["chain_id"],
        key_manager=VECTORS["key_manager"],
        nonce=int(vector["nonce"]),
        payload=bytes.fromhex(VECTORS["payload"][2:]),
        validity_timestamps=int(vector["validity_timestamps"], 16),
    )

    assert "0x" + call.hash.hex() == vector["hash"]
    assert sign_hash(CONTROLLER, call.hash) == vector["signature"]


def test_the_client_signs_the_quota_message_of_the_vectors() -> None:
    quota = VECTORS["quota"]

    inner = quota_message(VECTORS["profile"], quota["timestamp"])

    assert "0x" + inner.hex() == quota["inner"]
    assert personal_sign(CONTROLLER, inner) == quota["personal_sign_of_inner"]["signature"]


def test_the_client_signs_messages_as_wallets_do() -> None:
    text = "example.org wants you to sign in"

    signature = personal_sign(CONTROLLER, text.encode())

    assert Account.recover_message(encode_defunct(text=text), signature=signature) == VECTORS["controller"]


def test_the_service_accepts_every_quota_form_of_the_vectors_and_no_further_one() -> None:
    forms = [form for form in VECTORS["quota"].values() if isinstance(form, dict)]
    accepted = quota_digests(address=VECTORS["profile"], timestamp=VECTORS["quota"]["timestamp"])

    assert {form["digest"] for form in forms} == {"0x" + digest.hex() for digest in accepted}


def test_the_service_reports_each_wrong_hash_of_the_vectors_by_its_code() -> None:
    call = lsp25.RelayCall(VECTORS["key_manager"], bytes.fromhex(VECTORS["payload"][2:]), b"", relay_nonce=0)
    codes = {
        "0x" + wrong.digest.hex(): wrong.mistake.code
        for wrong in lsp25.wrong_hashes(chain_id=42, call=call, profile=VECTORS["profile"])
    }

    for code, digest in VECTORS["wrong_hashes_of_the_first_call"].items():
        assert codes[digest] == code


def test_the_guide_lists_every_signing_mistake_and_no_other() -> None:
    listed = {
        cells[0].strip("`") for cells in rows(DOCS / "signing.md") if cells[0].startswith("`signature-")
    }

    assert listed == {mistake.code for mistake in mistakes.SignatureMistake.__subclasses__()}


def test_the_guide_shows_the_vectors() -> None:
    shown = set(re.findall(r"0x[0-9a-f]{64,}", GUIDE))

    for vector in VECTORS["lsp25"]:
        assert {vector["hash"], vector["signature"]} <= shown
