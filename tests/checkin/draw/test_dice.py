"""Throws are fair, bounded and repeatable."""

import hashlib
import hmac
import secrets

import pytest

from checkin.draw import _SPAN, commitment_of, throw


def test_a_throw_is_the_remainder_of_the_first_eight_bytes_of_an_hmac() -> None:
    seed, message = secrets.token_bytes(32), secrets.token_hex(8)
    number = int(hmac.new(seed, f"{message}:0".encode(), hashlib.sha256).hexdigest()[:16], 16)

    assert throw(seed=seed, message=message, outcomes=1000) == number % 1000


def test_a_number_of_the_incomplete_run_is_thrown_again_with_the_next_counter() -> None:
    # With this many outcomes almost half of all numbers lie in the incomplete run.
    outcomes = _SPAN // 2 + 1
    seed, outcomes_seen = secrets.token_bytes(32), set()
    for place in range(200):
        message = f"throw {place}"
        numbers = [
            int.from_bytes(hmac.digest(seed, f"{message}:{counter}".encode(), "sha256")[:8], "big")
            for counter in range(64)
        ]
        first = next(number for number in numbers if number < outcomes)
        assert throw(seed=seed, message=message, outcomes=outcomes) == first
        outcomes_seen.add(first == numbers[0])
    assert outcomes_seen == {True, False}


def test_one_outcome_leaves_no_choice() -> None:
    assert {throw(seed=secrets.token_bytes(32), message=str(n), outcomes=1) for n in range(20)} == {0}


def test_every_outcome_of_a_small_roll_occurs() -> None:
    seed = secrets.token_bytes(32)
    assert {throw(seed=seed, message=str(n), outcomes=6) for n in range(500)} == set(range(6))


@pytest.mark.parametrize("outcomes", [0, -1, _SPAN + 1])
def test_a_roll_over_an_invalid_number_of_outcomes_is_refused(outcomes: int) -> None:
    with pytest.raises(ValueError, match="outcomes"):
        throw(seed=secrets.token_bytes(32), message="", outcomes=outcomes)


def test_another_seed_gives_another_roll() -> None:
    throws = {throw(seed=secrets.token_bytes(32), message="same", outcomes=_SPAN) for _ in range(20)}
    assert len(throws) == 20


def test_the_commitment_is_the_hash_of_the_seed() -> None:
    seed = secrets.token_bytes(32)
    assert commitment_of(seed) == hashlib.sha256(seed).hexdigest()
