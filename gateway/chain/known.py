"""Facts of public chains. The settings module imports this one, so it imports nothing."""

from typing import NamedTuple

_GWEI = 10**9


class Known(NamedTuple):
    """Facts of a public chain; the tip is the lowest that its nodes take."""

    name: str
    coin: str
    family: str
    block_seconds: str
    tip_wei: int
    explorer_url: str


KNOWN = {
    1: Known("Ethereum", "ETH", "ethereum", "12", _GWEI, "https://etherscan.io"),
    10: Known("OP Mainnet", "ETH", "op-stack", "2", 10**6, "https://optimistic.etherscan.io"),
    42: Known("LUKSO", "LYX", "ethereum", "12", _GWEI, "https://explorer.lukso.network"),
    56: Known("BNB Smart Chain", "BNB", "ethereum", "0.75", _GWEI // 10, "https://bscscan.com"),
    100: Known("Gnosis", "xDAI", "ethereum", "5", _GWEI, "https://gnosisscan.io"),
    130: Known("Unichain", "ETH", "op-stack", "1", 10**6, "https://uniscan.xyz"),
    137: Known("Polygon", "POL", "ethereum", "2", 30 * _GWEI, "https://polygonscan.com"),
    1868: Known("Soneium", "ETH", "op-stack", "2", 10**6, "https://soneium.blockscout.com"),
    4201: Known("LUKSO Testnet", "LYX", "ethereum", "12", _GWEI, "https://explorer.testnet.lukso.network"),
    8453: Known("Base", "ETH", "op-stack", "2", 10**6, "https://basescan.org"),
    42161: Known("Arbitrum One", "ETH", "arbitrum", "0.25", 0, "https://arbiscan.io"),
    57073: Known("Ink", "ETH", "op-stack", "1", 10**6, "https://explorer.inkonchain.com"),
    84532: Known("Base Sepolia", "ETH", "op-stack", "2", 10**6, "https://sepolia.basescan.org"),
    11155111: Known("Sepolia", "ETH", "ethereum", "12", _GWEI, "https://sepolia.etherscan.io"),
}
