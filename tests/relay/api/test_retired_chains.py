"""A chain that is no longer in the settings: its calls stay readable, and can be erased; new calls are refused."""

import pytest
from pytest_django import Settings

from credits.queries import balance_of
from credits.services import reconciliation as ledger
from devstack.world.profiles import Profile
from gateway.chain.config import on_chain
from relay.models import RelayTransaction
from relay.services import erasure
from relay.services.settling import reconciliation
from tests.relay.api.conftest import Wallet, execute_body
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.api.test_lsp15 import lsp15_body
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
    assert reconciliation.find_differences(since=later(-3600)) == []
    assert ledger.find_differences() == []
    erasure.erase(user)
    retired.refresh_from_db()
    assert retired.hold.key == f"relay:erased:{retired.hold_id}"
    assert balance_of(user) == balance
    assert ledger.find_differences() == []
