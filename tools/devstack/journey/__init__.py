"""
The wallet journey: a wallet's first day, over HTTP.

The journey compares every figure in the service's responses with the chain, over JSON-RPC, and with the payment
provider's records. It stops at the first difference with a message.
"""
