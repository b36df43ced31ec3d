"""The keys of an account."""


def publishable(secret_key: str) -> str:
    """Return the publishable key that belongs to the secret key."""
    return "pk_test_" + secret_key.removeprefix("sk_test_")
