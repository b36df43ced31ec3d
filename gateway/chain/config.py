"""
The chains of this process, from the settings, and the current one. No other module reads the chains' settings.

One chain is home: accounts, sessions and everything about money are proved there. Code that reads or changes a chain
uses the current one, which is home unless it runs inside `on_chain`, like Django's current time zone. Rows keep the id
of their chain.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from gateway.chain.errors import ChainUnknown
from gateway.chain.fees import FeePolicy
from gateway.chain.further import ChainSettings
from gateway.chain.known import KNOWN
from gateway.chain.types import Chain, Finality, Funding, LossBudget, Pace, PriceLimits

_LONGEST_SHOWN = 20
# The service does not use a node that is further behind the others than this.
_MAX_LAG_BLOCKS = 5
# The parts of a chain's loss limit that one user has.
_USER_SHARE = 50
_current: ContextVar[int | None] = ContextVar("chain", default=None)


def get_chain() -> Chain:
    """Return the current chain."""
    chain_id = _current.get()
    return home() if chain_id is None else _configured()[chain_id]


@cache
def home() -> Chain:
    """Return the chain on which accounts are proved."""
    return Chain(
        id=settings.CHAIN_ID,
        node_urls=tuple(settings.CHAIN_RPC_URLS),
        node_timeout_seconds=settings.CHAIN_RPC_TIMEOUT_SECONDS,
        node_places=settings.WEB_THREADS // 4,
        quorum=settings.CHAIN_QUORUM,
        max_head_age_seconds=max(60, 10 * settings.CHAIN_BLOCK_SECONDS),
        max_lag_blocks=_MAX_LAG_BLOCKS,
        block_seconds=settings.CHAIN_BLOCK_SECONDS,
        confirmations=settings.CONFIRMATIONS,
        fees=FeePolicy(
            floor_wei=settings.RELAY_FEE_FLOOR_WEI,
            cap_wei=settings.RELAY_FEE_CAP_WEI,
            tip_wei=settings.RELAY_TIP_WEI,
            tip_cap_wei=settings.RELAY_TIP_CAP_WEI,
        ),
        pace=Pace(
            resend_seconds=settings.RELAY_RESEND_SECONDS,
            replace_seconds=settings.RELAY_REPLACE_SECONDS,
            min_validity_seconds=settings.RELAY_MIN_VALIDITY_SECONDS,
            track_seconds=settings.RELAY_TRACK_SECONDS,
        ),
        funding=Funding(
            below_wei=settings.RELAY_TOP_UP_BELOW_WEI,
            to_wei=settings.RELAY_TOP_UP_TO_WEI,
            daily_wei=settings.RELAY_TOP_UP_DAILY_WEI,
            treasury_address=settings.RELAY_TREASURY_ADDRESS,
        ),
        losses=LossBudget(settings.RELAY_LOSS_PER_HOUR_WEI, settings.RELAY_USER_LOSS_PER_HOUR_WEI),
        first_credit_wei=settings.CREDIT_WEI,
        max_call_credits=settings.RELAY_MAX_CALL_CREDITS,
        explorer_url=settings.EXPLORER_URL,
        currency=settings.CHAIN_COIN,
        finality=Finality(blocks=settings.FINALITY_BLOCKS, by_tag=settings.FINALITY_TAG),
        name=settings.CHAIN_NAME,
        family=settings.CHAIN_FAMILY,
    )


def chain_of(chain_id: int) -> Chain:
    """Return the chain of a row. One that the settings no longer have keeps its name, coin and explorer if known."""
    configured = _configured().get(chain_id)
    if configured is not None:
        return configured
    known = KNOWN.get(chain_id)
    return replace(
        home(),
        id=chain_id,
        node_urls=(),
        name=known.name if known else f"Chain {chain_id}",
        currency=known.coin if known else "coins",
        explorer_url=known.explorer_url if known else "",
        takes_calls=False,
    )


def chains() -> tuple[Chain, ...]:
    """Return all chains of the settings, home first."""
    return tuple(_configured().values())


@contextmanager
def on_chain(chain_id: int) -> Iterator[None]:
    """
    Make this chain the current one of the block. Other threads are not affected.

    Raises:
        ChainUnknown: the settings have no such chain.
    """
    if chain_id not in _configured():
        raise _unknown(str(chain_id))
    token = _current.set(chain_id)
    try:
        yield
    finally:
        _current.reset(token)


def chain_in(text: str) -> int:
    """
    Return the id of the chain that a part of a path names.

    Raises:
        ChainUnknown: the settings have no such chain.
    """
    named = [chain.id for chain in chains() if str(chain.id) == text]
    if not named:
        raise _unknown(text[:_LONGEST_SHOWN])
    return named[0]


def _unknown(named: str) -> ChainUnknown:
    ids = ", ".join(str(chain.id) for chain in chains())
    return ChainUnknown(f"This service has no chain {named}. Its chains are: {ids}.")


@contextmanager
def on_home() -> Iterator[None]:
    """Make the home chain the current one of the block, or of the function that this decorates."""
    with on_chain(home().id):
        yield


@cache
def _configured() -> dict[int, Chain]:
    return {home().id: home()} | {one.id: _further(one) for one in settings.CHAINS.values()}


def _further(one: ChainSettings) -> Chain:
    return Chain(
        id=one.id,
        node_urls=one.rpc_urls,
        node_timeout_seconds=settings.CHAIN_RPC_TIMEOUT_SECONDS,
        node_places=settings.WEB_THREADS // 4,
        quorum=one.quorum,
        max_head_age_seconds=max(60, round(10 * one.block_seconds)),
        # Short blocks make a node look further behind than it is.
        max_lag_blocks=max(_MAX_LAG_BLOCKS, round(_MAX_LAG_BLOCKS * 2 / one.block_seconds)),
        block_seconds=one.block_seconds,
        confirmations=one.confirmations,
        fees=FeePolicy(
            floor_wei=one.fee_floor_wei,
            cap_wei=one.fee_cap_wei,
            tip_wei=one.tip_wei,
            tip_cap_wei=2 * one.tip_wei,
        ),
        pace=Pace(
            resend_seconds=max(3.0, 3 * one.block_seconds),
            replace_seconds=max(5.0, 5 * one.block_seconds),
            min_validity_seconds=max(10, round(3 * one.block_seconds)),
            track_seconds=min(one.block_seconds, 3),
        ),
        funding=Funding(
            below_wei=one.top_up_below_wei,
            to_wei=4 * one.top_up_below_wei,
            daily_wei=one.top_up_daily_wei,
            treasury_address=one.treasury_address,
        ),
        losses=LossBudget(one.loss_per_hour_wei, one.loss_per_hour_wei // _USER_SHARE),
        first_credit_wei=one.credit_wei,
        max_call_credits=one.max_call_credits,
        price_limits=PriceLimits(days=one.price_days, margin_percent=one.price_margin_percent),
        explorer_url=one.explorer_url,
        currency=one.coin,
        finality=Finality(blocks=one.finality_blocks, by_tag=one.finality_tag),
        name=one.name,
        family=one.family,
        takes_calls=one.takes_calls,
        spends_given_credits=one.spends_given_credits,
    )


def read_again(**_: Any) -> None:
    """Read the chains again, because the settings have changed."""
    home.cache_clear()
    _configured.cache_clear()


# Django's test tools send this signal when they override a setting.
setting_changed.connect(read_again)
