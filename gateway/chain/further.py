"""The settings of a chain besides home. The settings module imports this one, so it imports nothing."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ChainSettings:
    """One chain's settings. Amounts are in wei of its coin; `block_seconds` may be a fraction."""

    id: int
    name: str
    coin: str
    family: str
    explorer_url: str
    rpc_urls: tuple[str, ...] = field(repr=False)
    quorum: int
    block_seconds: float
    confirmations: int
    finality_blocks: int
    finality_tag: bool
    fee_floor_wei: int
    fee_cap_wei: int
    tip_wei: int
    relayer_keys: tuple[str, ...] = field(repr=False)
    treasury_key: str = field(repr=False)
    treasury_address: str
    top_up_below_wei: int
    top_up_daily_wei: int
    loss_per_hour_wei: int
    credit_wei: int
    max_call_credits: int
    price_days: int
    price_margin_percent: int
    takes_calls: bool
    spends_given_credits: bool
