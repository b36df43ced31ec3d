"""
A wallet in thirty lines: sign in, send 1 wei from the profile to its controller, and wait for a final status.

    python wallet.py stack.json

`make run` writes `stack.json` to var/stack.json. For another service, write a file with the same members:
base_url, rpc_url, and profiles, a list whose first item has profile_address and controller_private_key.
"""

import json
import sys
from pathlib import Path

from eth_account import Account

from credit_relay_client import Call, RelayProblem, connect

stack = json.loads(Path(sys.argv[1]).read_text())
profile = stack["profiles"][0]["profile_address"]
controller = Account.from_key(stack["profiles"][0]["controller_private_key"])

relay = connect(stack["base_url"], controller, node=stack["rpc_url"])
print(f"signed in as {profile}, {relay.quota(profile)['quota']} credits")
try:
    transaction = relay.send(profile, Call(to=controller.address, value=1))
    print(f"accepted as {transaction.hash}")
    end = transaction.wait()
    print(f"{end['status']}, {end['creditsUsed']} credits used, {end['creditsAfter']} left")
except RelayProblem as problem:
    sys.exit(f"refused, {problem}")
