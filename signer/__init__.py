"""
The signer: a separate process that has the keys and signs only transactions that its policy allows.

It trusts no caller: it reads contracts through its own node and keeps a journal of its signatures. It imports neither
Django nor the service. The service imports the encoding of transactions from here.
"""

import os
import sys
from importlib import import_module

# Set before the first hash, here and in the service, which imports this package: by default eth-hash uses pycryptodome,
# a dependency of eth-keyfile, which takes four times as long.
os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")

# py_ecc, a dependency of eth-account, raises the recursion limit to 100,000 when it is imported. With that limit, a
# deeply nested JSON document overflows the C stack and ends the process; with Python's own it raises `RecursionError`.
import_module("py_ecc")
sys.setrecursionlimit(1_000)
