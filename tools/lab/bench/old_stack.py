"""
Starts the stack of a commit older than `run --load`, as that commit's own bench does, and describes it.

Run by that commit's Python in that commit's folder, so `devstack` is imported from there. The argument is the
folder for `stack.json` and `environment.json`, which `run --load` of later commits writes.
"""

import json
import signal
import sys
from pathlib import Path

from lab.bench.stage import stage  # type: ignore[import-untyped]

_PROFILES = 60


def main() -> None:
    """Serve until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    folder = Path(sys.argv[1])
    with stage(profiles=_PROFILES) as running:
        environment = running.meter.service["web"].environment
        (folder / "environment.json").write_text(json.dumps(environment))
        described = {
            "base_url": running.base_url,
            "rpc_url": running.wallets[0].rpc.url,
            "database_url": running.database_url,
            "chain_id": int(environment["CHAIN_ID"]),
            "profiles": [
                {
                    "profile_address": wallet.profile_address,
                    "key_manager_address": wallet.key_manager_address,
                    "controller_private_key": wallet.controller_key,
                }
                for wallet in running.wallets
            ],
        }
        (folder / "stack.json").write_text(json.dumps(described))
        signal.pause()


if __name__ == "__main__":
    main()
