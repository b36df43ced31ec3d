"""Trusted code on another chain: an address counts only if the code there is that of home."""

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.core.checks import run_checks

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.config import on_chain
from gateway.chain.lsp25 import RelayCall
from relay import checks
from relay.models import RelayTransaction
from signer.contracts import code_hash
from tests.relay.api.conftest import Wallet, execute_body, signed_in
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.api.test_lsp15 import lsp15_body
from tests.relay.chain import node_away
from tests.relay.rows import everything
from tests.relay.two_chains import ForeignChain
from users.models import FoundCode, TrustedImplementation, User
from users.queries import are_trusted, trusted_codes

pytestmark = pytest.mark.django_db


@pytest.fixture
def wallet(user: User, profile: Profile) -> Wallet:
    return signed_in(profile)


def _execute(wallet: Wallet, chain: ForeignChain, call: RelayCall) -> Any:
    return wallet.post(EXECUTE, {**execute_body(call), "chainId": chain.id})


@pytest.mark.parametrize("part", ["universal_profile", "key_manager"])
def test_another_contract_at_a_trusted_address_is_not_trusted(
    wallet: Wallet, profile: Profile, foreign: ForeignChain, part: str
) -> None:
    foreign.codes[getattr(foreign, part)] = secrets.token_bytes(64)
    before = everything()
    for _ in range(2):  # Once it is read, and once it is known.
        assert_problem(_execute(wallet, foreign, foreign.sign(profile)), 403, "untrusted-code")
    anonymous = Wallet(None, wallet.address)
    path = f"/api/lsp15/{foreign.id}/execute"
    assert_problem(anonymous.post(path, lsp15_body(profile, foreign.sign(profile))), 403, "untrusted-code")
    draft = {"transaction": {"abi": "0x" + foreign.sign(profile).payload.hex()}, "chainId": foreign.id}
    prepared = wallet.post("/api/relay/prepare", draft)
    assert [one["code"] for one in prepared.body["refusals"]] == ["untrusted-code"]
    assert everything() == before
    assert not foreign.pending


def test_an_address_without_code_is_asked_about_again(
    wallet: Wallet, profile: Profile, foreign: ForeignChain
) -> None:
    code = foreign.codes.pop(foreign.key_manager)
    assert_problem(_execute(wallet, foreign, foreign.sign(profile)), 403, "untrusted-code")
    assert not FoundCode.objects.filter(chain_id=foreign.id, address=foreign.key_manager).exists()
    foreign.codes[foreign.key_manager] = code
    assert _execute(wallet, foreign, foreign.sign(profile)).status == 200


def test_trusted_addresses_are_compared_once(
    services: Services, wallet: Wallet, profile: Profile, foreign: ForeignChain
) -> None:
    for ahead in range(3):
        assert _execute(wallet, foreign, foreign.sign(profile, ahead=ahead)).status == 200
    assert foreign.request_counts["read_code"] == 2
    kept = set(FoundCode.objects.values_list("chain_id", "address", "code_hash"))
    assert kept == {
        (chain_id, address, code_hash(foreign.codes[address]))
        for chain_id in (services.chain_id, foreign.id)
        for address in (foreign.universal_profile, foreign.key_manager)
    }


def test_while_home_is_away_only_what_was_compared_is_trusted(
    wallet: Wallet, profile: Profile, foreign: ForeignChain
) -> None:
    before = everything()
    with node_away():
        assert_problem(_execute(wallet, foreign, foreign.sign(profile)), 503, "chain-unavailable")
    assert everything() == before
    assert _execute(wallet, foreign, foreign.sign(profile)).status == 200
    with node_away():
        assert _execute(wallet, foreign, foreign.sign(profile, ahead=1)).status == 200
    assert RelayTransaction.objects.count() == 2


def test_what_is_no_longer_trusted_at_home_is_trusted_nowhere(
    wallet: Wallet, profile: Profile, foreign: ForeignChain
) -> None:
    assert _execute(wallet, foreign, foreign.sign(profile)).status == 200
    TrustedImplementation.objects.filter(address=foreign.key_manager).update(is_active=False)
    with on_chain(foreign.id):
        assert f"key-manager {foreign.key_manager}" not in trusted_codes()
    # The session ends, because it is proved at home.
    response = _execute(wallet, foreign, foreign.sign(profile, ahead=1))
    assert_problem(response, 401, "session-ended")
    assert RelayTransaction.objects.count() == 1


def test_whole_code_is_trusted_by_its_hash_on_every_chain(foreign: ForeignChain) -> None:
    names = {kind: "0x" + secrets.token_hex(32) for kind in TrustedImplementation.Kind.values}
    for kind, name in names.items():
        TrustedImplementation.objects.create(kind=kind, name="whole", code_hash=name)
    with on_chain(foreign.id):
        codes = trusted_codes()
    assert are_trusted(codes, profile_code=names["profile"], key_manager_code=names["key-manager"])


def _reports() -> list[tuple[str | None, bool]]:
    """Return the ids of what is reported about trusted code, and whether it names an address."""
    return [(one.id, "0x" in one.msg) for one in checks.trusted_code_of_chains()]


def test_the_check_reports_other_code_at_a_trusted_address(
    user: User, foreign: ForeignChain, new_call: Callable[..., RelayCall]
) -> None:
    assert _reports() == []
    foreign.codes[foreign.key_manager] = secrets.token_bytes(64)
    assert _reports() == [("relay.E009", True)]
    assert ("relay.E009", True) in [
        (one.id, foreign.key_manager in one.msg)
        for one in run_checks(tags=["gateway"], include_deployment_checks=True)
    ]
    with foreign.away():
        assert _reports() == [("relay.W006", False)]
    with node_away():
        assert _reports() == [("relay.W006", False)]
