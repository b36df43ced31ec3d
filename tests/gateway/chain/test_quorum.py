"""Reads by quorum: too few nodes decide nothing."""

import random
import secrets
from dataclasses import replace

import pytest

from gateway.chain.quorum import agreed_outcome, agreed_view
from gateway.chain.types import AccountState, ChainView, Head, Receipt, SendKind, SendOutcome

_HASH, _OTHER = ("0x" + secrets.token_hex(32) for _ in range(2))
_RECEIPT = Receipt(_HASH, 90, "0x" + secrets.token_hex(32), True, 70_000, 10**9)
_ACCOUNT = "0x" + secrets.token_hex(20)


def _view(receipt: Receipt | None = _RECEIPT, *, height: int = 100, nonce: int = 7) -> ChainView:
    return ChainView(
        head=Head(height, 1_000 + height, 10**9),
        receipts={_HASH: receipt} if receipt else {},
        accounts={_ACCOUNT: AccountState(nonce, nonce - 1, nonce * 10**15)},
    )


def _agreed(*views: ChainView, needed: int) -> ChainView:
    return agreed_view(views, transaction_hashes=[_HASH], accounts=[_ACCOUNT], needed=needed)


@pytest.mark.parametrize(
    "wrong_receipt",
    [
        replace(_RECEIPT, succeeded=False),
        replace(_RECEIPT, gas_used=1),
        replace(_RECEIPT, effective_gas_price_wei=10**12),
        replace(_RECEIPT, block_hash="0x" + "00" * 32),
        replace(_RECEIPT, block_number=91),
        None,
    ],
)
def test_one_liar_leaves_two_nodes_undecided_and_is_outvoted_by_two_of_three(
    wrong_receipt: Receipt | None,
) -> None:
    views = [_view(), _view(wrong_receipt)]
    random.shuffle(views)
    view = _agreed(*views, needed=2)
    assert (view.receipts, set(view.undecided)) == ({}, {_HASH})

    views = [_view(), _view(), _view(wrong_receipt)]
    random.shuffle(views)
    view = _agreed(*views, needed=2)
    assert (view.receipts, view.undecided) == ({_HASH: _RECEIPT}, frozenset())


def test_a_missing_receipt_needs_the_same_quorum_as_a_found_one() -> None:
    view = _agreed(_view(None), _view(None), _view(), needed=2)
    assert (view.receipts, view.undecided) == ({}, frozenset())


def test_an_unrequested_receipt_is_ignored() -> None:
    unasked = replace(_view(), receipts={_OTHER: replace(_RECEIPT, transaction_hash=_OTHER)})
    assert _agreed(unasked, unasked, needed=2).receipts == {}


@pytest.mark.parametrize(
    ("nonces", "agreed", "highest"),
    [((7, 900), 7, 900), ((7, 2), 2, 7), ((7, 7, 900), 7, 7), ((7, 2, 7), 7, 7), ((7, 7), 7, 7)],
)
def test_an_account_nonce_moves_as_far_as_the_quorum_has_seen_it(
    nonces: tuple[int, ...], agreed: int, highest: int
) -> None:
    view = _agreed(*(_view(nonce=nonce) for nonce in nonces), needed=2)
    assert view.accounts[_ACCOUNT] == AccountState(agreed, agreed - 1, agreed * 10**15, highest)


@pytest.mark.parametrize(
    ("heights", "agreed"), [((100, 99), 99), ((100, 10**9, 99), 100), ((50, 100, 100), 100)]
)
def test_the_newest_block_is_the_one_that_the_quorum_has_reached(
    heights: tuple[int, ...], agreed: int
) -> None:
    view = _agreed(*(_view(height=height) for height in heights), needed=2)
    assert (view.head.number, view.head.timestamp) == (agreed, 1_000 + agreed)


_TAKEN, _USED = SendOutcome(SendKind.ACCEPTED, ""), SendOutcome(SendKind.NONCE_TOO_LOW, "nonce too low")
_POOR, _CHEAP = SendOutcome(SendKind.REFUSED, "no funds"), SendOutcome(SendKind.UNDERPRICED, "underpriced")
_LATER = SendOutcome(SendKind.LATER, "txpool is full")


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ([_POOR, _TAKEN], SendKind.ACCEPTED),
        ([_CHEAP, _USED, _TAKEN], SendKind.ACCEPTED),
        ([_POOR, _USED], SendKind.NONCE_TOO_LOW),
        ([_LATER, _USED], SendKind.NONCE_TOO_LOW),
        ([_POOR, _POOR], SendKind.REFUSED),
        ([_CHEAP, _CHEAP], SendKind.UNDERPRICED),
        ([_POOR, _CHEAP], SendKind.UNDERPRICED),
        ([_POOR, _POOR, _CHEAP], SendKind.REFUSED),
        ([_POOR], SendKind.LATER),
        ([_CHEAP, _LATER], SendKind.LATER),
    ],
)
def test_one_node_can_take_a_transaction_and_two_are_needed_to_refuse_it(
    outcomes: list[SendOutcome], kind: SendKind
) -> None:
    random.shuffle(outcomes)
    assert agreed_outcome(outcomes, needed=2).kind is kind


@pytest.mark.parametrize(
    ("tips", "needed", "least"),
    [
        ([3], 1, 3),
        ([0, 3, 3], 2, 3),
        ([0, 3, 9], 2, 3),
        ([0, 0, 30], 2, 0),
        ([None, 3, 9], 2, 9),
        ([None, None, 3], 2, None),
        ([0, 3], 2, 3),
    ],
)
def test_the_lowest_tip_is_the_one_that_a_quorum_takes(
    tips: list[int | None], needed: int, least: int | None
) -> None:
    outcomes = [SendOutcome(SendKind.UNDERPRICED, "", least_tip_wei=tip) for tip in tips]
    random.shuffle(outcomes)
    assert agreed_outcome(outcomes, needed=needed).least_tip_wei == least


def test_a_quorum_of_one_accepts_a_single_node() -> None:
    assert agreed_outcome([_POOR], needed=1) == _POOR
    assert _agreed(_view(), needed=1) == _view()
