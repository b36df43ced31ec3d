"""The rules of sponsors, as pure functions: decoding a payload, choosing the policy that pays, verifying vouchers."""
