"""`python -m devstack calls`: signed relay calls of the running stack, for any load generator."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from devstack.bench.calls import signed_call
from devstack.files import read_json
from devstack.rpc import Rpc
from devstack.wallet import Wallet
from devstack.world.abi import calldata

_TARGETS = [f"0x{number:040x}" for number in range(4096, 4100)]


def signed_calls(stack_file: Path, count: int) -> Iterator[str]:
    """
    Yield a line for each call: an access token, a space, and the body of `execute`.

    The profiles call in turn, each time on a channel of its own, so that the calls may be sent in any order and at
    the same time. Tokens last for ten minutes.
    """
    described = read_json(stack_file)
    wallets = [_wallet(profile, described) for profile in described["profiles"]]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(Wallet.sign_in, wallets))
    # Other ones than those of an earlier run.
    first_channel = time.time_ns()
    for number, wallet in enumerate(islice(cycle(wallets), count)):
        target = _TARGETS[number % len(_TARGETS)]
        payload = calldata("execute(uint256,address,uint256,bytes)", 0, target, 1, b"")
        nonce = (first_channel + number) << 128
        body = signed_call(wallet, payload, chain_id=described["chain_id"], nonce=nonce)
        yield f"{wallet.token} {json.dumps(body)}"


def _wallet(profile: dict[str, str], described: dict[str, Any]) -> Wallet:
    return Wallet(
        profile["profile_address"],
        profile["key_manager_address"],
        profile["controller_private_key"],
        described["base_url"],
        Rpc(described["rpc_url"]),
    )
