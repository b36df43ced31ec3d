"""
The settings of each chain besides home, from the environment: `CHAINS` lists their ids.

The variables of chain 8453 begin with `CHAIN_8453_`. Most have a default: facts of known chains, the values of home for
everything that is counted in gas or seconds, and the keys of home.
"""

from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured

from gateway import env
from gateway.chain.further import ChainSettings
from gateway.chain.known import KNOWN

FAMILIES = ("ethereum", "op-stack", "arbitrum")
_GWEI = 10**9


# Families whose fees are not computed yet: the service would pay what its users do not.
_WITHOUT_FEES = {"arbitrum": "whose estimates contain L1's fee, which the service does not follow yet"}
# Chains whose fees the service cannot compute.
_REFUSED = {
    232: "Lens, which has zkSync's model of gas",
    300: "zkSync Sepolia, which has another model of gas",
    324: "zkSync Era, which has another model of gas",
    2741: "Abstract, which has zkSync's model of gas",
    5000: "Mantle, whose L1 fee is in another coin",
    5003: "Mantle Sepolia, whose L1 fee is in another coin",
}


def further_chains(
    listed: Sequence[str], *, home: int, signer: str, keys: tuple[str, ...], treasury_key: str
) -> dict[int, ChainSettings]:
    """
    Return the settings of each listed chain. `keys` and `treasury_key` are those of home.

    Where the `signer` is this process ("local"), a chain uses the keys of home unless it has its own. Errors name their
    variable.
    """
    read: dict[int, ChainSettings] = {}
    for text in listed:
        with env.errors_of("CHAINS"):
            chain_id = _chain_id(text, home=home, others=read)
            read[chain_id] = _read(chain_id, signs=signer == "local", keys=keys, treasury_key=treasury_key)
    return read


def home_facts(chain_id: int) -> tuple[str, str, str, str]:
    """
    Return the name, coin, family and explorer of the home chain.

    Raises:
        ImproperlyConfigured: the chain cannot be served.
    """
    if chain_id in _REFUSED:
        raise ImproperlyConfigured(f"CHAIN_ID is {_REFUSED[chain_id]}; this chain is not supported.")
    known = KNOWN.get(chain_id)
    return (known.name, known.coin, known.family, known.explorer_url) if known else _unknown(chain_id)


def _unknown(chain_id: int) -> tuple[str, str, str, str]:
    return f"Chain {chain_id}", "LYX", "ethereum", ""


def _chain_id(text: str, *, home: int, others: dict[int, ChainSettings]) -> int:
    if not text.isdecimal() or not int(text):
        raise ImproperlyConfigured("CHAINS must list the ids of chains, such as 8453,10.")
    chain_id = int(text)
    if chain_id in _REFUSED:
        raise ImproperlyConfigured(f"CHAINS lists {_REFUSED[chain_id]}; this chain is not supported.")
    if chain_id == home:
        raise ImproperlyConfigured(
            f"CHAINS lists {chain_id}, which is the home chain: name it in CHAIN_ID alone."
        )
    if chain_id in others:
        raise ImproperlyConfigured(f"CHAINS lists {chain_id} twice.")
    return chain_id


def _read(chain_id: int, *, signs: bool, keys: tuple[str, ...], treasury_key: str) -> ChainSettings:
    prefix, known = f"CHAIN_{chain_id}", KNOWN.get(chain_id)
    name, coin, family, explorer_url = home_facts(chain_id)
    family = env.choice(f"{prefix}_FAMILY", allowed=FAMILIES, default=family)
    if family in _WITHOUT_FEES:
        raise ImproperlyConfigured(
            f"CHAINS lists {chain_id}, of the family {family}, {_WITHOUT_FEES[family]}; it is not supported."
        )
    rpc_urls = tuple(dict.fromkeys(env.urls(f"{prefix}_RPC_URLS")))
    block_seconds = env.seconds(f"{prefix}_BLOCK_SECONDS", default=known.block_seconds if known else "")
    tip_wei = env.integer(f"{prefix}_TIP_WEI", default=known.tip_wei if known else _GWEI)
    below_wei = env.integer(f"{prefix}_TOP_UP_BELOW_WEI", default=10**16)
    if signs:
        keys = tuple(env.secrets(f"{prefix}_RELAYER_KEYS", default="")) or keys
        treasury_key = env.secret(f"{prefix}_TREASURY_KEY", default="") or treasury_key
    else:
        env.absent(f"{prefix}_RELAYER_KEYS")
        env.absent(f"{prefix}_TREASURY_KEY")
    return ChainSettings(
        id=chain_id,
        name=env.optional(f"{prefix}_NAME", name),
        coin=env.required(f"{prefix}_COIN") if known is None else env.optional(f"{prefix}_COIN", coin),
        family=family,
        explorer_url=env.base_url(f"{prefix}_EXPLORER_URL", default=explorer_url),
        rpc_urls=rpc_urls,
        quorum=env.integer(
            f"{prefix}_QUORUM", default=len(rpc_urls) // 2 + 1, minimum=1, maximum=len(rpc_urls)
        ),
        block_seconds=block_seconds,
        # Shallow reorganisations are a matter of seconds, not of blocks.
        confirmations=env.integer(
            f"{prefix}_CONFIRMATIONS", default=max(2, round(4 / block_seconds)), minimum=1
        ),
        finality_blocks=max(
            64, round(env.integer(f"{prefix}_FINALITY_SECONDS", default=900) / block_seconds)
        ),
        finality_tag=env.flag(f"{prefix}_FINALITY_TAG", default=False),
        fee_floor_wei=env.integer(f"{prefix}_FEE_FLOOR_WEI", default=max(10**7, tip_wei)),
        fee_cap_wei=env.integer(f"{prefix}_FEE_CAP_WEI", default=100 * _GWEI, minimum=1),
        tip_wei=tip_wei,
        relayer_keys=keys,
        treasury_key=treasury_key,
        treasury_address=env.optional(f"{prefix}_TREASURY_ADDRESS"),
        top_up_below_wei=below_wei,
        top_up_daily_wei=env.integer(f"{prefix}_TOP_UP_DAILY_WEI", default=100 * below_wei),
        loss_per_hour_wei=env.integer(f"{prefix}_LOSS_PER_HOUR_WEI", default=below_wei),
        credit_wei=env.integer(f"{prefix}_CREDIT_WEI", minimum=1),
        max_call_credits=env.integer(f"{prefix}_MAX_CALL_CREDITS", default=0, minimum=0),
        price_days=env.integer(f"{prefix}_PRICE_DAYS", default=30, minimum=1),
        price_margin_percent=env.integer(f"{prefix}_PRICE_MARGIN_PERCENT", default=25, minimum=1),
        takes_calls=env.flag(f"{prefix}_TAKES_CALLS", default=True),
        spends_given_credits=env.flag(f"{prefix}_SPENDS_GIVEN_CREDITS", default=False),
    )
