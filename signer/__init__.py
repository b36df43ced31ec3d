"""
The signer: a process of its own that holds the keys, and signs nothing but what its policy allows.

It takes nobody's word: it reads contracts through a node of its own and remembers in a journal what it has signed. It
knows nothing of Django or the database. The service imports what both must agree on: how a transaction is written.
"""

import os

# Before anything is hashed, here and in the service, whose packages import this one: eth-hash would take pycryptodome,
# which eth-keyfile brings along and which needs four times as long.
os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")
