"""
From a request to a stored, signed relay call.

`submission` has the story of a call; read it first. Its steps, in order: `limits` refuse by rows; `preflight` decides
by the chain, with the gas of `gas_limits` and the bounds of `quotes`; `sponsors.services.paying` chooses who pays;
`acceptance` takes, signs and stores by two `statements`; `refusals` says why a call got no slot. `calls` is the object
that goes through all of it. With keys elsewhere, `unsigned` signs and stores.

Around the story: `together` does a step for several calls at once, `batching` brings their threads together, and
`contention` has the lines for locked rows. Beside it: `lsp15` for requests without a token, `preparation` for calls
that are not signed yet, `quota` for reading what is left.
"""
