"""
The wallet journey: what a wallet does on its first day, over HTTP alone.

Every figure that the service answers is held against the chain's own answer over
JSON-RPC and against the payment provider's own records; the first difference ends
the journey with a message that names it.
"""
