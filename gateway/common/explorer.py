"""Pages of the chain's block explorer; empty where none is configured."""

from django.conf import settings


def transaction_page(transaction_hash: str) -> str:
    """Return the address of a transaction's page."""
    return f"{settings.EXPLORER_URL}/tx/{transaction_hash}" if settings.EXPLORER_URL else ""


def account_page(address: str) -> str:
    """Return the address of an account's page."""
    return f"{settings.EXPLORER_URL}/address/{address}" if settings.EXPLORER_URL else ""
