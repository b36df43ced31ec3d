"""The chain, and what relaying on it may cost."""

from gateway.common import env

CHAIN_ID = env.integer("CHAIN_ID", minimum=1)
CHAIN_RPC_URLS = env.urls("CHAIN_RPC_URLS")
CHAIN_RPC_TIMEOUT_SECONDS = env.integer("CHAIN_RPC_TIMEOUT_SECONDS", default=5, minimum=1)
CHAIN_BLOCK_SECONDS = env.integer("CHAIN_BLOCK_SECONDS", default=12, minimum=1)
# Where the admin links transactions and profiles to; empty for no links.
EXPLORER_URL = env.base_url(
    "EXPLORER_URL",
    default={42: "https://explorer.lukso.network", 4201: "https://explorer.testnet.lukso.network"}.get(
        CHAIN_ID, ""
    ),
)
# `open` also serves profiles whose code nobody has vetted, with a lower gas cap.
CHAIN_TRUST = env.choice("CHAIN_TRUST", allowed=("strict", "open"), default="strict")

CREDIT_WEI = env.integer("CREDIT_WEI", default=10**12, minimum=1)
CONFIRMATIONS = env.integer("CONFIRMATIONS", default=2, minimum=1)
# Processes that sign nothing get no key: with `none` they refuse to start if they have one.
RELAY_SIGNER = env.choice("RELAY_SIGNER", allowed=("local", "none"), default="local")
if RELAY_SIGNER == "none":
    env.absent("RELAY_RELAYER_KEYS")
RELAY_RELAYER_KEYS = env.secrets("RELAY_RELAYER_KEYS") if RELAY_SIGNER == "local" else []
RELAY_MAX_IN_FLIGHT = env.integer("RELAY_MAX_IN_FLIGHT", default=16, minimum=1)
RELAY_MAX_FOLLOWERS = env.integer("RELAY_MAX_FOLLOWERS", default=8)
# Limits for one profile: its share of all account nonces in flight, and calls that end without effect.
RELAY_USER_SHARE_PERCENT = env.integer("RELAY_USER_SHARE_PERCENT", default=50, minimum=1, maximum=100)
RELAY_DEAD_ENDS_PER_HOUR = env.integer("RELAY_DEAD_ENDS_PER_HOUR", default=10, minimum=1)
RELAY_DEAD_ENDS_PER_DAY = env.integer("RELAY_DEAD_ENDS_PER_DAY", default=40, minimum=1)
RELAY_MAX_GAS = env.integer("RELAY_MAX_GAS", default=3_000_000, minimum=21_000)
RELAY_MAX_GAS_UNTRUSTED = env.integer("RELAY_MAX_GAS_UNTRUSTED", default=500_000, minimum=21_000)
RELAY_MAX_PAYLOAD_BYTES = env.integer("RELAY_MAX_PAYLOAD_BYTES", default=32_768, minimum=4)
RELAY_FEE_FLOOR_WEI = env.integer("RELAY_FEE_FLOOR_WEI", default=10**9)
RELAY_FEE_CAP_WEI = env.integer("RELAY_FEE_CAP_WEI", default=20 * 10**9, minimum=1)
# With less time an accepted call would expire unsent, and the service would pay for its account nonce.
RELAY_MIN_VALIDITY_SECONDS = env.integer(
    "RELAY_MIN_VALIDITY_SECONDS", default=3 * CHAIN_BLOCK_SECONDS, minimum=2 * CHAIN_BLOCK_SECONDS
)
RELAY_RESEND_SECONDS = env.integer("RELAY_RESEND_SECONDS", default=3 * CHAIN_BLOCK_SECONDS, minimum=1)
RELAY_REPLACE_SECONDS = env.integer("RELAY_REPLACE_SECONDS", default=5 * CHAIN_BLOCK_SECONDS, minimum=1)
RELAY_TRACK_SECONDS = env.integer("RELAY_TRACK_SECONDS", default=min(CHAIN_BLOCK_SECONDS, 3), minimum=1)
QUOTA_WINDOW_SECONDS = 5
