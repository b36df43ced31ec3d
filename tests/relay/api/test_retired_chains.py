"""
A chain that is no longer in the settings: its calls stay readable, and can be erased; new calls are refused.

Calls that were still open keep what they hold until the chain is back.
"""

from collections.abc import Callable
from unittest.mock import patch

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.queries import balance_of
from credits.services import reconciliation as ledger
from devstack.world.profiles import Profile
from gateway.chain.config import on_chain
from gateway.chain.errors import SignerUnavailable
from gateway.chain.lsp25 import RelayCall
from relay import checks
from relay.models import RelayTransaction, UnsignedCall
from relay.services import erasure
from relay.services.sending import cancellation
from relay.services.settling import reconciliation
from signer.client import SignerAway, SignerClient
from tests.relay.api.conftest import Wallet, execute_body
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.api.test_lsp15 import lsp15_body
from tests.relay.callers import execute
from tests.relay.conftest import Settle
from tests.relay.rows import everything
from tests.relay.two_chains import ForeignChain
from tests.relay.workers import broadcast_all, later, track
from users.models import User

pytestmark = pytest.mark.django_db
_READS = (
    "/api/user/transactions",
    "/api/user/timeline",
    "/api/user/dashboardInfo",
    "/api/user/home",
    "/api/ledger/proofs",
    "/api/service",
)


@pytest.fixture
def retired(wallet: Wallet, profile: Profile, foreign: ForeignChain, settings: Settings) -> RelayTransaction:
    """A call of a chain that was removed after the call had settled."""
    body = {**execute_body(foreign.sign(profile)), "chainId": foreign.id}
    assert wallet.post(EXECUTE, body).status == 200
    with on_chain(foreign.id):
        broadcast_all()
        foreign.mine(2)
        assert track() == 1
    settings.CHAINS = {}
    return RelayTransaction.objects.get()


def test_calls_of_a_retired_chain_stay_in_all_lists(
    wallet: Wallet, retired: RelayTransaction, foreign: ForeignChain
) -> None:
    name = retired.transaction_hash
    for path in (*_READS, f"/api/relay/transactions/{name}"):
        assert wallet.send("get", path).status == 200, path
    status = wallet.post("/api/relay/transactionStatus", {"transactionHash": name}).body
    assert (status["status"], status["chainId"]) == ("Success", foreign.id)
    filtered = wallet.send("get", f"/api/user/transactions?chainId={foreign.id}")
    assert [row["transaction_hash"] for row in filtered.body["results"]] == [name]


def test_a_retired_chain_takes_no_call(
    wallet: Wallet, profile: Profile, retired: RelayTransaction, foreign: ForeignChain
) -> None:
    before = everything()
    call = foreign.sign(profile, relay_nonce=1)
    body = {**execute_body(call), "chainId": foreign.id}
    assert_problem(wallet.post(EXECUTE, body), 404, "chain-unknown")
    path = f"/api/lsp15/{foreign.id}/execute"
    assert_problem(wallet.post(path, lsp15_body(profile, call)), 404, "chain-unknown")
    assert everything() == before


def test_calls_of_a_retired_chain_are_compared_and_erased(
    user: User, retired: RelayTransaction, foreign: ForeignChain
) -> None:
    balance = balance_of(user)
    # Its blocks were not final yet, and nobody reads them any longer.
    assert erasure.reason_to_wait(user) == ""
    assert reconciliation.find_differences(since=later(-3600)) == []
    assert ledger.find_differences() == []
    erasure.erase(user)
    retired.refresh_from_db()
    assert retired.hold.key == f"relay:erased:{retired.hold_id}"
    assert balance_of(user) == balance
    assert ledger.find_differences() == []


@pytest.mark.parametrize("is_sent", [True, False])
def test_open_calls_of_a_removed_chain_keep_their_holds_until_it_is_back(
    wallet: Wallet,
    user: User,
    profile: Profile,
    foreign: ForeignChain,
    settings: Settings,
    new_call: Callable[..., RelayCall],
    settle: Settle,
    is_sent: bool,
) -> None:
    body = {**execute_body(foreign.sign(profile)), "chainId": foreign.id}
    made = wallet.post(EXECUTE, body)
    if is_sent:
        with on_chain(foreign.id):
            broadcast_all()
            foreign.mine(2)
    row, balance, with_chain = RelayTransaction.objects.get(), balance_of(user), settings.CHAINS
    assert balance.held == row.hold.amount > 0
    settings.CHAINS = {}

    # Everybody reads that it is in progress, and nobody can take back what it holds.
    assert wallet.post("/api/relay/transactionStatus", made.body).body["status"] in {"Pending", "Submitted"}
    for path in (*_READS, f"/api/relay/transactions/{row.transaction_hash}"):
        assert wallet.send("get", path).status == 200, path
    assert_problem(wallet.post(EXECUTE, body), 404, "chain-unknown")
    assert list(cancellation.orphaned_holds(now=later(30 * 86_400))) == []
    assert erasure.reason_to_wait(user) == "a relay call is in progress"
    assert wallet.post(EXECUTE, execute_body(new_call())).status == 200
    assert settle() == 1
    assert balance_of(user).held == balance.held
    assert ledger.find_differences() == []
    assert reconciliation.find_differences(since=later(-3600)) == []

    settings.CHAINS = with_chain
    with on_chain(foreign.id):
        broadcast_all()
        foreign.mine(2)
        assert track() == 1
    row.refresh_from_db()
    assert row.status == "Success"
    assert balance_of(user).held == 0
    assert ledger.find_differences() == []


@pytest.mark.usefixtures("signers")
def test_a_call_that_waits_for_its_signature_on_a_removed_chain_is_named_too(
    user: User, profile: Profile, foreign: ForeignChain, settings: Settings
) -> None:
    """Its hold is no orphan, so nobody could release it."""
    with (
        patch.object(SignerClient, "sign", side_effect=SignerAway("as a test wants it")),
        on_chain(foreign.id),
        pytest.raises(SignerUnavailable),
    ):
        execute(user=user, call=foreign.sign(profile), now=timezone.now())
    assert UnsignedCall.objects.get().chain_id == foreign.id
    assert balance_of(user).held > 0
    settings.CHAINS = {}
    assert list(cancellation.orphaned_holds(now=later(30 * 86_400))) == []
    [error] = checks.chains_with_open_calls()
    assert (error.id, error.msg) == (
        "relay.E007",
        f"Chain {foreign.id} is not in CHAINS and has calls in progress: 1.",
    )
