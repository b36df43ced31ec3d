"""Live and test: the two modes that Stripe keeps apart. A secret key is of one of them, full or restricted."""

LIVE_PREFIXES = ("sk_live_", "rk_live_")
TEST_PREFIXES = ("sk_test_", "rk_test_")


def is_live_key(secret_key: str) -> bool:
    """Return whether real money moves under this key."""
    return secret_key.startswith(LIVE_PREFIXES)
