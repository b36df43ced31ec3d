"""The chain of this process, from the settings. No other module reads the chain's settings."""

from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from gateway.chain.fees import FeePolicy
from gateway.chain.types import Chain, Finality

# The service does not use a node that is further behind the others than this.
_MAX_LAG_BLOCKS = 5


@cache
def get_chain() -> Chain:
    """Return the chain of the settings; created once per process."""
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
        explorer_url=settings.EXPLORER_URL,
        finality=Finality(blocks=settings.FINALITY_BLOCKS, by_tag=settings.FINALITY_TAG),
    )


def _read_again(**_: Any) -> None:
    get_chain.cache_clear()


# Django's test tools send this signal when they override a setting.
setting_changed.connect(_read_again)
