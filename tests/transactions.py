"""No network request is sent while a transaction of ours is open."""

from django.db import connection


def assert_none_is_open() -> None:
    """Fail inside of a transaction, except for the one in which pytest-django runs a test."""
    ours = [block for block in connection.atomic_blocks if not getattr(block, "_from_testcase", False)]
    assert not ours, "a network request inside of a transaction"
