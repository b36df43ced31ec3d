"""Which moves there are, how often each is made, and with what."""

from typing import Any

from hypothesis import strategies as st

from rewards.models import ModifierType
from tests.economy.model import NETWORKS

Move = tuple[str, dict[str, Any]]

_OWNERS = st.integers(0, 1)
_NAMES = st.integers(0, 11)
_MANY = st.integers(0, 10_000)
_OFTEN = {"earn": 4, "spend": 5, "check_in": 2}
_ARGUMENTS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "earn": {
        "owner": _OWNERS,
        "network": st.sampled_from(NETWORKS),
        "name": _NAMES,
        "amount": st.integers(1, 90),
        "back": st.sampled_from([False, False, True]),
    },
    "spend": {
        "owner": _OWNERS,
        "name": _NAMES,
        "amount": st.integers(1, 90),
        "which": _MANY,
        "action": st.sampled_from(
            ["hold", "hold", "hold", "capture", "capture", "raise", "release", "reopen"]
        ),
    },
    "change_what_was_paid": {
        "which": _MANY,
        "percent": st.integers(0, 110),
        "renews": st.sampled_from([None, None, True, False]),
    },
    "check_in": {"owner": _OWNERS, "key": st.integers(0, 19), "waits": st.booleans()},
    "give_a_modifier": {
        "owner": _OWNERS,
        "name": _NAMES,
        "kind": st.sampled_from(ModifierType.values),
        "percent": st.integers(1, 80),
        "hours": st.integers(1, 60),
    },
    "let_time_pass": {
        "tens": st.one_of(st.integers(1, 30), st.sampled_from([36, 144, 430, 4_400])),
        "sweeps": st.booleans(),
    },
    "ask_to_adjust": {
        "owner": _OWNERS,
        "name": _NAMES,
        "amount": st.integers(1, 60),
        "large": st.booleans(),
        "takes": st.booleans(),
    },
    "subscribe": {"owner": _OWNERS, "collected": st.integers(50, 2_000), "again": st.booleans()},
    "decide": {"which": _MANY, "who": st.integers(0, 1), "agrees": st.booleans()},
}


def _with_arguments(name: str) -> st.SearchStrategy[Move]:
    return st.tuples(st.just(name), st.fixed_dictionaries(_ARGUMENTS[name]))


# A move is one draw and one rule: of many rules, Hypothesis leaves most out of any one run.
MOVES = st.sampled_from([name for name in _ARGUMENTS for _ in range(_OFTEN.get(name, 1))]).flatmap(
    _with_arguments
)
