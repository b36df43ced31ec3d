"""Policies and calls for the rules, with random values."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from sponsors.rules.calls import Action
from sponsors.rules.policies import Facts, PolicyVersion
from sponsors.rules.vouchers import Voucher
from tests.factories import random_address

NOW = datetime(2031, 5, 7, 11, 13, 17, 191, tzinfo=UTC) + timedelta(seconds=secrets.randbelow(10**6))
CHAIN = 1 + secrets.randbelow(10**6)


def random_function() -> bytes:
    """Return a random 4-byte selector."""
    return secrets.token_bytes(4)


def policy(**values: Any) -> PolicyVersion:
    """Return a version that pays for everything, but for these values."""
    return PolicyVersion(
        **{
            "version_id": 1 + secrets.randbelow(10**9),
            "policy": secrets.token_hex(4),
            "chain_id": CHAIN,
            **values,
        }
    )


def facts(**values: Any) -> Facts:
    """Return a call with random values, but for these."""
    defaults = {
        "actions": (Action(random_address(), random_function()),),
        "profile_since": NOW - timedelta(days=1),
        "credits": 1 + secrets.randbelow(1000),
        "gas_price_wei": secrets.randbelow(10**12),
        "now": NOW,
        "chain_id": CHAIN,
    }
    return Facts(**{**defaults, **values})


def voucher(**values: Any) -> Voucher:
    """Return a voucher with random values, but for these."""
    defaults = {
        "sponsor": secrets.token_hex(4),
        "policy": secrets.token_hex(4),
        "profile": random_address(),
        "voucher_id": secrets.token_bytes(32),
        "deadline": int(NOW.timestamp()) + 1 + secrets.randbelow(10**4),
        "maximum_credits": secrets.randbelow(10**6),
    }
    return Voucher(**{**defaults, **values})
