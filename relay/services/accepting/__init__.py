"""From a request to a stored, signed relay call: shape, checks, price, hold, account nonce, signature."""
