"""Settlements are compared with the chain until their block is final."""

from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from eth_account import Account

from credits.queries import balance_of
from devstack.world.profiles import Profile
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from relay.models import FinalBlock
from relay.services.settling import reorganisations
from relay.services.settling.reorganisations import FinalBlockReplaced
from tests.relay.chain import Chain
from tests.relay.conftest import Accept, Settle
from tests.relay.workers import assert_books_agree, mine_and_settle, resend, track
from users.models import User

pytestmark = pytest.mark.django_db


class TestFinality:
    def test_a_call_is_watched_until_its_block_is_final(
        self, accept: Accept, settle: Settle, chain: Chain, settings: Any
    ) -> None:
        settings.FINALITY_BLOCKS = 5
        row = accept()
        settle()
        block = row.attempts.get().block_number
        assert block in reorganisations.watch().heights
        chain.mine(5 - settings.CONFIRMATIONS)
        track()
        assert FinalBlock.objects.get().number == block
        assert reorganisations.watch().settled == []

    def test_calls_without_a_node_response_are_compared_later(
        self, accept: Accept, settle: Settle, chain: Chain, settings: Any
    ) -> None:
        settings.FINALITY_BLOCKS = 3
        accept()
        settle()
        before, watch = FinalBlock.objects.get(), reorganisations.watch()
        chain.mine(5)
        view = get_chain_client().read_chain(
            transaction_hashes=[],
            accounts=[],
            confirmations=1,
            heights=[before.number],
            finality=get_chain().finality,
        )
        assert reorganisations.reopen_vanished(watch=watch, view=view, now=timezone.now()) == 0
        assert FinalBlock.objects.get().number == before.number
        track()
        assert FinalBlock.objects.get().number > before.number

    def test_the_nodes_finalized_tag_decides_if_configured(
        self, accept: Accept, settle: Settle, chain: Chain, settings: Any
    ) -> None:
        settings.FINALITY_TAG = True
        row = accept()
        settle()
        chain.mine(60)
        track()
        assert reorganisations.watch().settled != []
        chain.mine(10)
        track()
        assert reorganisations.watch().settled == []
        chain.reorganise(3)
        track()
        row.refresh_from_db()
        assert row.status == "Success"

    def test_below_finality_the_tracker_stops_until_an_operator_decides(
        self, user: User, accept: Accept, settle: Settle, chain: Chain, settings: Any
    ) -> None:
        settings.FINALITY_BLOCKS = 3
        row = accept()
        settle()
        chain.mine(2)
        track()
        balance = balance_of(user)
        final = FinalBlock.objects.get().number
        chain.reorganise(get_chain_client().head().number - final + 2)
        for _ in range(2):
            with pytest.raises(FinalBlockReplaced):
                track()
        row.refresh_from_db()
        assert (row.status, balance_of(user)) == ("Success", balance)
        assert FinalBlock.objects.get().replaced_at is not None

        reorganisations.accept_chain(from_height=final - 2)
        track()
        row.refresh_from_db()
        assert row.status == "Submitted"
        assert FinalBlock.objects.get().replaced_at is None
        resend()
        assert mine_and_settle(chain) == 1
        assert_books_agree()

    def test_a_node_that_returns_to_the_old_chain_is_trusted_again(
        self, accept: Accept, settle: Settle, chain: Chain
    ) -> None:
        accept()
        settle()
        hidden = FinalBlock.objects.get().block_hash
        FinalBlock.objects.update(block_hash="0x" + "ab" * 32)
        with pytest.raises(FinalBlockReplaced):
            track()
        FinalBlock.objects.update(block_hash=hidden)
        track()
        assert FinalBlock.objects.get().replaced_at is None


def test_a_restarted_worker_compares_earlier_settlements(
    accept: Accept, settle: Settle, chain: Chain, profile: Profile
) -> None:
    row = accept()
    settle()
    # Far more blocks than are watched pass unread; the call is in none of them.
    chain.reorganise(settings.CONFIRMATIONS)
    chain.mine(settings.FINALITY_BLOCKS * 2)
    track()
    row.refresh_from_db()
    assert row.status == "Submitted"


def test_a_call_whose_account_nonce_was_lost_is_settled_only_when_that_is_final(
    accept: Accept, chain: Chain, settings: Any
) -> None:
    settings.FINALITY_BLOCKS = 40
    row = accept()
    attempt = row.attempts.select_related("relayer").get()
    keys = {Account.from_key(key).address: key for key in settings.RELAY_RELAYER_KEYS}
    chain.use_key_elsewhere(keys[attempt.relayer.address], account_nonce=attempt.account_nonce)
    chain.mine(39)
    assert track() == 0
    chain.mine()
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, row.failure_code) == ("Cancelled", "account-nonce-lost")
