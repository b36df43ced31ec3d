"""Who bears a clawback of transferred credits, against a model that moves single credits."""

import random
from collections import Counter

from sponsors.rules.transfers import Part, returned, taken


def test_what_the_newest_transfer_has_moved_is_taken_first_and_the_persons_credits_last() -> None:
    moved = [Part(1, 10), Part(2, 5)]

    assert taken(4, moved) == [Part(2, 4)]
    assert taken(12, moved) == [Part(2, 5), Part(1, 7)]
    assert taken(20, moved) == [Part(2, 5), Part(1, 10), Part(None, 5)]
    assert taken(7, []) == [Part(None, 7)]


def test_the_last_taken_is_returned_first() -> None:
    earlier = [Part(None, 30), Part(2, 40), Part(1, 20), Part(2, -10)]

    assert returned(15, earlier) == [Part(1, 15)]
    assert returned(50, earlier) == [Part(1, 20), Part(2, 30)]
    assert returned(80, earlier) == [Part(1, 20), Part(2, 30), Part(None, 30)]


def test_random_histories_take_and_return_single_credits() -> None:
    for _ in range(300):
        left: Counter[int | None] = Counter({None: random.randint(0, 20)})
        stack: list[int | None] = []
        history: list[Part] = []
        for step in range(1, random.randint(2, 12)):
            if random.random() < 0.4 and left[None]:
                moved = random.randint(1, left[None])
                left[None] -= moved
                left[step] = moved
            elif random.random() < 0.6:
                lots = sorted(lot for lot in left if lot is not None)
                wanted = random.randint(0, sum(left.values()))
                parts = taken(wanted, [Part(lot, left[lot]) for lot in lots])
                for _ in range(wanted):
                    lot = next((lot for lot in reversed(lots) if left[lot]), None)
                    left[lot] -= 1
                    stack.append(lot)
                assert sum(part.credits for part in parts) == wanted
                history += parts
            else:
                wanted = random.randint(0, len(stack))
                parts = returned(wanted, history)
                assert Counter({part.lot: part.credits for part in parts}) == Counter(
                    stack.pop() for _ in range(wanted)
                )
                for part in parts:
                    left[part.lot] += part.credits
                    history.append(Part(part.lot, -part.credits))
            assert min(left.values()) >= 0
