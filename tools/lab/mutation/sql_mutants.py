"""Textual mutants of SQL: comparisons, AND and OR, arithmetic, bounds, numbers, and removed conditions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_IS_SQL = re.compile(r"\b(SELECT|UPDATE|INSERT INTO|DELETE FROM)\b")
# Comments and string literals are not mutated.
_LEFT_ALONE = re.compile(r"--[^\n]*|'(?:[^']|'')*'|@\w+@|%\(\w+\)s|\b(?:varchar|numeric|char)\(\d+\)")
_SWAPS = (
    (r"(?<= )<=(?= )", "<"),
    (r"(?<= )<(?= )", "<="),
    (r"(?<= )>=(?= )", ">"),
    (r"(?<= )>(?= )", ">="),
    (r"(?<= )=(?= )", "<>"),
    (r"(?<= )<>(?= )", "="),
    (r"\bAND\b", "OR"),
    (r"(?<!CREATE )\bOR\b(?! REPLACE)", "AND"),
    (r"(?<= )\+(?= )", "-"),
    (r"(?<= )-(?= )", "+"),
    (r"(?<=[\w)] )(?<!SELECT )(?<!RETURNING )\*(?= )", "/"),
    (r"\bleast\(", "greatest("),
    (r"\bgreatest\(", "least("),
    (r"\bmin\(", "max("),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bIS NOT NULL\b", "IS NULL"),
    (r"\bNOT FOUND\b", "FOUND"),
    (r"\bIF FOUND\b", "IF NOT FOUND"),
    (r"\bNOT EXISTS\b", "EXISTS"),
    (r"\b(?<!NOT )EXISTS\b", "NOT EXISTS"),
    (r"\bNOT IN\b", "IN"),
    (r"(?<!NOT )\bIN (?=[(@])", "NOT IN "),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
)
# After SET, = is an assignment.
_CLAUSE = re.compile(r"\b(SET|WHERE|AND|OR|ON|IF|WHEN|CASE|SELECT|FILTER|HAVING|THEN)\b")
_NUMBER = re.compile(r"(?<![\w.$'])\d+(?![\w.'])")
_CONDITION = re.compile(r"\b(AND|OR|WHERE) (?=\S)")
_END = re.compile(r"\n|;|\b(?:AND|OR|THEN|ORDER BY|GROUP BY|RETURNING|LIMIT|FOR|LOOP)\b")


@dataclass(frozen=True)
class SqlMutant:
    """A mutated text, with the line and description of the change."""

    line: int
    change: str
    text: str


def is_sql(value: object) -> bool:
    """Return whether a constant is an SQL statement."""
    return isinstance(value, str) and _IS_SQL.search(value) is not None


def mutants_of_sql(text: str) -> list[SqlMutant]:
    """Return every mutant of an SQL text. Some may be invalid SQL, which PostgreSQL rejects."""
    plain = _LEFT_ALONE.sub(lambda match: "·" * len(match[0]), text)
    places = [
        *((match, other) for pattern, other in _SWAPS for match in re.finditer(pattern, plain)),
        *((match, str(int(match[0]) + step)) for match in _NUMBER.finditer(plain) for step in (1, -1)),
    ]
    changes = [(match.start(), match.end(), other) for match, other in places if not _assigns(plain, match)]
    changes += _without_conditions(plain)
    return [_mutant(text, *change) for change in sorted(changes)]


def _assigns(plain: str, match: re.Match[str]) -> bool:
    clauses = _CLAUSE.findall(plain, 0, match.start()) if match[0] == "=" else []
    return bool(clauses) and clauses[-1] == "SET"


def _without_conditions(plain: str) -> Iterator[tuple[int, int, str]]:
    """Yield the position of each condition that ends with its line or before the next, and its replacement."""
    for match in _CONDITION.finditer(plain):
        end = _END.search(plain, match.end())
        condition = plain[match.end() : end.start() if end else len(plain)]
        if condition.count("(") == condition.count(")") and condition.strip():
            nothing = "false " if match[1] == "OR" else "true "
            yield match.end(), match.end() + len(condition.rstrip()), nothing.strip()


def _mutant(text: str, start: int, end: int, other: str) -> SqlMutant:
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    line = text[first : last if last >= 0 else len(text)].strip()
    change = f"{text[start:end]} → {other} in {' '.join(line.split())}"
    return SqlMutant(text.count("\n", 0, start) + 1, change, text[:start] + other + text[end:])
