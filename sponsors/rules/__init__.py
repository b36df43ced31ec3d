"""The rules of sponsors, as pure functions: what a payload does, which policy pays for it, and signed vouchers."""
