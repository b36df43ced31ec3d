"""
A signer as an attacker in a web process reaches it: the real process, a real chain, and the socket's bytes.

Nothing of the service or of the client is used to ask.
"""

import http.client
import json
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from devstack.environment import Secrets, keep_secrets
from devstack.services.stack import Services
from devstack.signing import KeyPlace, Signing, signing_at
from devstack.world.profiles import ProfilePlan
from gateway.chain.contracts import encode_execute_relay_call
from tests.fakes.pool import read_transaction
from tests.fakes.profiles import random_address

_CHAIN_ID, _FEE_CAP, _MAX_GAS = 4201, 20 * 10**9, 5_000_000

Item = dict[str, Any]


@dataclass(frozen=True)
class Web:
    """What an attacker in a web process has: the socket, the relayers' addresses, and the chain."""

    signing: Signing
    kept: Secrets
    key_manager: str
    other_key_manager: str

    @property
    def relayer(self) -> str:
        return self.kept.relayer_addresses[0]

    def call(self, **changed: Any) -> Item:
        """Return a relay call as the service asks for it, with changes."""
        data = encode_execute_relay_call(
            signature=secrets.token_bytes(65), nonce=0, validity=0, payload=secrets.token_bytes(68)
        )
        item = {
            "address": self.relayer,
            "value_wei": 0,
            "chain_id": _CHAIN_ID,
            "account_nonce": 0,
            "max_priority_fee_per_gas_wei": 10**9,
            "max_fee_per_gas_wei": 2 * 10**9,
            "gas_limit": 200_000,
            "to": self.key_manager,
            "data": data.hex(),
        }
        return item | changed

    def ask(self, *items: Item) -> list[Item]:
        """Return the responses to one batch."""
        results: list[Item] = json.loads(self._answer("POST /sign", json.dumps({"transactions": items})))[
            "results"
        ]
        return results

    def entries(self) -> int:
        """Return how many transactions were signed so far."""
        return int(self._answer("GET /metrics").split("\nsigner_journal_entries ")[1].split()[0])

    def _answer(self, what: str, body: str = "") -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(120)
            connection.connect(self.signing.settings["SIGNER_URL"].removeprefix("unix://"))
            head = f"{what} HTTP/1.1\r\nHost: signer\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall((head + body).encode())
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert response.status == 200
            return response.read().decode()


@pytest.fixture(scope="module")
def web(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A signer of its own."""
    folder = tmp_path_factory.mktemp("signer")
    kept = keep_secrets(folder / "secrets.json", relayers=2)
    signing = signing_at(KeyPlace.KEYSTORE, services, kept, folder, {})
    profiles = services.world.create_profiles(ProfilePlan(), ProfilePlan())
    (process,) = signing.processes
    with process.running():
        yield Web(signing, kept, *(profile.key_manager_address for profile in profiles))


def _answering(services: Services, word: str) -> str:
    """Return a new contract that responds to every question with this address."""
    code = bytes.fromhex(f"73{word[2:]}60005260206000f3")
    (address,) = services.world.deployer.deploy(bytes.fromhex(f"60{len(code):02x}80600b6000396000f3") + code)
    return address


def test_code_in_the_web_process_cannot_sign_transfers_other_chains_or_contracts_or_fees_above_the_cap(
    web: Web, services: Services
) -> None:
    profile = services.world.create_profiles(ProfilePlan())[0]
    fake = _answering(services, profile.profile_address)
    attacks = {
        "a transfer": web.call(value_wei=1),
        "a transfer without call": web.call(value_wei=10**18, to=random_address(), data="", gas_limit=21_000),
        "a transfer to another relayer": web.call(
            value_wei=1, to=web.kept.relayer_addresses[1], data="", gas_limit=21_000
        ),
        "mainnet": web.call(chain_id=42),
        "a fee above the cap": web.call(max_fee_per_gas_wei=_FEE_CAP + 1),
        "a tip above the cap": web.call(
            max_fee_per_gas_wei=_FEE_CAP + 1, max_priority_fee_per_gas_wei=_FEE_CAP + 1
        ),
        "gas above the cap": web.call(gas_limit=_MAX_GAS + 1),
        "a contract that names a profile": web.call(to=fake),
        "a contract that says yes to all": web.call(to=services.world.deploy_impostor()),
        "a profile": web.call(to=profile.profile_address),
        "the implementation": web.call(to=services.world.implementations.key_manager),
        "nobody": web.call(to=random_address()),
        "another function": web.call(data="a9059cbb" + "00" * 64),
        "a new contract": web.call(to="0x" + "00" * 20, data="60006000f3"),
        "a key that it has not": web.call(address=random_address()),
    }
    honest, before = web.call(account_nonce=1), web.entries()
    *refused, signed = web.ask(*attacks.values(), honest)
    assert {name: result["refusal"] for name, result in zip(attacks, refused, strict=True)} == dict.fromkeys(
        attacks, "policy"
    )
    assert read_transaction(bytes.fromhex(signed["raw"])).to == web.key_manager
    # Each alone is refused as well: it was not the company that gave it away.
    assert [web.ask(attack)[0]["refusal"] for attack in attacks.values()] == ["policy"] * len(attacks)
    # Of all of them, the journal has the one that the service would have sent.
    assert web.entries() == before + 1


def test_an_old_account_nonce_is_signed_for_nothing_else_not_even_after_the_signer_was_killed(
    web: Web,
) -> None:
    honest = web.call(account_nonce=7)
    (signed,) = web.ask(honest)
    others = [
        web.call(account_nonce=7),
        honest | {"to": web.other_key_manager},
        honest | {"gas_limit": 300_000, "max_fee_per_gas_wei": _FEE_CAP},
        honest | {"max_fee_per_gas_wei": 10**9},
        web.call(account_nonce=7, max_fee_per_gas_wei=_FEE_CAP),
    ]
    same = honest | {"to": web.key_manager.lower()}

    def assert_refused() -> None:
        assert [result["refusal"] for result in web.ask(*others)] == ["nonce-used"] * len(others)
        assert web.ask(honest, same) == [signed, signed]

    assert_refused()
    (process,) = web.signing.processes
    process.kill()
    process.start()
    process.wait()
    assert_refused()
