"""
The signer: a process of its own that holds the keys and signs only what its policy allows.

It trusts no caller: it reads contracts through a node of its own and keeps a journal of its signatures. It imports
neither Django nor the service. The service imports the encoding of transactions from here.
"""

import os

# Set before the first hash, here and in the service, which imports this package: by default eth-hash uses pycryptodome,
# a dependency of eth-keyfile, which takes four times as long.
os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")
