"""Everything at once on few accounts: nothing deadlocks, and the ledger explains every credit."""

import contextlib
import random
import secrets
from functools import partial

from credits.errors import HoldReleased
from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import entries, holds
from credits.services.reconciliation import Finding, find_differences
from tests.credits.holding import capture, place_hold
from tests.credits.rows import query
from tests.factories import UserFactory
from tests.threads import at_once
from users.models import User

_THREADS, _ROUNDS = 10, 8


def test_many_threads_on_two_accounts_neither_deadlock_nor_lose_a_credit(
    transactional_db: None, key: str
) -> None:
    users = [UserFactory.create(), UserFactory.create()]
    for user in users:
        entries.grant(user=user, credits=10**6, source=EntrySource.SURVEYS, key=secrets.token_hex(16))
    # Threads share the hold keys of a round, so each hold has many owners who close it in their own way.
    at_once(
        [partial(_live, users, key, random.Random(secrets.randbits(64))) for _ in range(_THREADS)],
        in_transaction=True,
    )

    assert find_differences() == []
    assert query("SELECT count(*) FROM credits_hold WHERE status = 'HELD'") == [(0,)]
    assert [balance_of(user).held for user in users] == [0, 0]


def test_reconciling_in_the_middle_of_it_finds_nothing(transactional_db: None, user: User, key: str) -> None:
    rng = random.Random(secrets.randbits(64))
    results = at_once(
        [partial(_live, [user], key, random.Random(rng.random())) for _ in range(8)]
        + [_reconcile_all_along] * 2,
        in_transaction=True,
    )
    assert results == [[]] * 10


def _live(users: list[User], key: str, rng: random.Random) -> list[Finding]:
    """Hold, raise, and close, with a grant in between, each step as its own transaction would order its locks."""
    for number in range(_ROUNDS):
        user = users[number % len(users)]
        held = place_hold(user=user, credits=rng.randint(1, 9), key=f"{key}:{number}").hold.pk
        holds.raise_hold(hold_id=held, credits=rng.randint(5, 20), badge_debt=0)
        close = partial(capture, credits=rng.randint(0, 30)) if rng.random() < 0.6 else holds.release
        with contextlib.suppress(HoldReleased):
            close(hold_id=held)
        entries.grant(user=user, credits=1, source=EntrySource.CREDITS_BACK, key=secrets.token_hex(16))
    return []


def _reconcile_all_along() -> list[Finding]:
    return [finding for _ in range(_ROUNDS) for finding in find_differences()]
