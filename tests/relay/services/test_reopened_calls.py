"""A call that a reorganisation reopened keeps its place, also when the call was repeated or overtaken."""

from collections.abc import Callable

import pytest
from django.conf import settings
from django.utils import timezone

from credits.queries import balance_of
from devstack.services.stack import Services
from devstack.world.test_contracts import Flaky
from gateway.chain.client import get_chain_client
from gateway.chain.lsp25 import RelayCall
from relay.models import OVERTAKEN, RelayTransaction
from relay.services.settling import reorganisations
from tests.relay.callers import execute
from tests.relay.chain import Chain
from tests.relay.conftest import CREDITS, Accept, Settle
from tests.relay.signing import execute_payload
from tests.relay.workers import assert_books_agree, broadcast_all, mine_and_settle, resend, track
from users.models import User

pytestmark = pytest.mark.django_db


class TestRepeats:
    """A call that failed was repeated; then a reorganisation removes the failure."""

    @pytest.fixture
    def flaky(self, services: Services) -> Flaky:
        return services.world.deploy_flaky()

    @pytest.fixture
    def failed_and_repeated(
        self,
        flaky: Flaky,
        accept: Accept,
        new_call: Callable[..., RelayCall],
        chain: Chain,
        settle: Settle,
    ) -> tuple[RelayTransaction, RelayTransaction]:
        """Return the failed call and its repeat, settled as a success, in the newest blocks."""
        call = new_call(payload=execute_payload(flaky.address))
        first = accept(call)
        flaky.flip()
        broadcast_all()
        chain.mine(settings.CONFIRMATIONS)
        track()
        flaky.flip()
        second = accept(call)
        assert second.generation == 1
        settle()
        for row, status in ((first, "Failed"), (second, "Success")):
            row.refresh_from_db()
            assert row.status == status
        return first, second

    def depth_of(self, row: RelayTransaction) -> int:
        block = row.attempts.filter(block_number__isnull=False).get().block_number
        assert block is not None
        return get_chain_client().head().number - block + 1

    def test_the_repeat_is_executed_and_the_first_gives_way(
        self,
        user: User,
        chain: Chain,
        flaky: Flaky,
        failed_and_repeated: tuple[RelayTransaction, RelayTransaction],
    ) -> None:
        first, second = failed_and_repeated
        chain.reorganise(self.depth_of(first))
        # The block in which the target was repaired has disappeared with the others.
        flaky.flip()
        track()
        for row in (first, second):
            row.refresh_from_db()
            assert row.status == "Submitted"
        assert (first.is_superseded, second.is_superseded) == (True, False)
        assert first.terminal_status == "Cancelled"

        resend()
        broadcast_all()
        assert mine_and_settle(chain) == 2
        for row in (first, second):
            row.refresh_from_db()
        assert (first.status, first.failure_code) == ("Cancelled", reorganisations.SUPERSEDED)
        assert second.status == "Success"
        assert balance_of(user) == (CREDITS - second.real_cost, 0, CREDITS - second.real_cost)
        assert_books_agree()

    def test_if_the_first_is_still_executed_the_repeat_costs_nothing(
        self,
        user: User,
        chain: Chain,
        flaky: Flaky,
        failed_and_repeated: tuple[RelayTransaction, RelayTransaction],
    ) -> None:
        first, second = failed_and_repeated
        raws = [bytes(row.attempts.get().raw) for row in (first, second)]
        chain.reorganise(self.depth_of(first))
        flaky.flip()
        # The node's pool has kept both, and the first one succeeds in the new chain.
        get_chain_client().send_raw_transactions(raws)
        chain.mine(settings.CONFIRMATIONS)
        assert track() == 2
        for row in (first, second):
            row.refresh_from_db()
        assert first.status == "Success"
        assert (second.status, second.failure_code, second.real_cost) == (
            "Failed",
            OVERTAKEN,
            0,
        )
        assert balance_of(user) == (CREDITS - first.real_cost, 0, CREDITS - first.real_cost)
        assert_books_agree()

        # And once more: still it is the newer one that is wanted.
        chain.reorganise(self.depth_of(first))
        track()
        for row in (first, second):
            row.refresh_from_db()
            assert row.status == "Submitted"
        assert (first.is_superseded, second.is_superseded) == (True, False)

    def test_a_wallet_that_repeats_in_between_gets_one_of_both(
        self,
        user: User,
        chain: Chain,
        failed_and_repeated: tuple[RelayTransaction, RelayTransaction],
    ) -> None:
        first, second = failed_and_repeated
        chain.reorganise(self.depth_of(first))
        track()
        call = RelayCall(
            first.key_manager_address,
            bytes(first.payload),
            bytes(first.signature),
            first.relay_nonce,
            first.validity,
        )
        again = execute(user=user, call=call, now=timezone.now())
        assert again in {first.transaction_hash, second.transaction_hash}
        assert RelayTransaction.objects.count() == 2


def test_an_executed_call_is_overtaken_by_another_sender_on_the_new_chain(
    user: User, accept: Accept, settle: Settle, chain: Chain, new_call: Callable[..., RelayCall]
) -> None:
    call = new_call()
    row = accept(call)
    settle()
    chain.reorganise(settings.CONFIRMATIONS)
    chain.execute_externally(call)
    track()
    resend()
    assert mine_and_settle(chain) == 1
    row.refresh_from_db()
    assert row.status == "ExecutedExternally"
    assert balance_of(user) == (CREDITS - row.real_cost, 0, CREDITS - row.real_cost)
    assert_books_agree()
