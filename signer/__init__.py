"""
The signer: a process of its own that holds the keys, and signs nothing but what its policy allows.

It takes nobody's word: it reads contracts through a node of its own and remembers in a journal what it has signed. It
knows nothing of Django or the database. The service imports what both must agree on: how a transaction is written.
"""
