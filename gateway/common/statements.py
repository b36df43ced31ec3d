"""
SQL statements in a `.sql` file beside the module that executes them.

Before each statement, the file has a line with its name and a comment that says what it returns and why:

    -- name: last_check_ins
    -- The newest check-in of each user, for the dashboard.
    SELECT DISTINCT ON (user_id) user_id, day FROM checkin_checkin
    WHERE user_id = ANY(%(users)s) AND @counted@ ORDER BY user_id, day DESC

The module declares the names, and gets each statement as an attribute, without comments:

    class _Sql(Statements, file=__file__, counted=COUNTED):
        last_check_ins: str

    db.all_rows(_Sql.last_check_ins, {"users": users})

Values that differ between executions are parameters. `@name@` is for parts of the text that the code knows when the
module is imported: lists of columns, statuses, and conditions that several statements share. The file is read once.

Text that several statements of a file share follows `-- part: columns`, and replaces `@columns@` in those after it.
An expression for statements elsewhere may leave words to them: after `-- name: is_paused(part)`, its `@part@` stays
until `fill` replaces it.
"""

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

_NAME = re.compile(r"^-- (name|part): (\w+)(?:\((.*)\))?\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n?", re.MULTILINE)
_PLACEHOLDER = re.compile(r"@(\w+)@")


class Statements:
    """The statements of one file, each an attribute."""

    def __init_subclass__(
        cls, *, file: str | Path, shared: Mapping[str, str] = MappingProxyType({}), **values: str
    ) -> None:
        """
        Read the statements of the `.sql` file beside the module (or package) of `file` and has its name.

        Each of the `values` must be used; those in `shared` need not be.

        Raises:
            KeyError: a statement has an `@name@` without a value.
            ValueError: the file has other statements than the class, or two of one name, or does not use a value.
        """
        module = Path(file)
        path = (module.parent if module.stem == "__init__" else module).with_suffix(".sql")
        before, *found = _NAME.split(path.read_text())
        texts = [*zip(found[::4], found[1::4], found[2::4], found[3::4], strict=True)]
        names = sorted(name for kind, name, *_ in texts if kind == "name")
        if names != sorted(inspect.get_annotations(cls)) or _COMMENT.sub("", before).strip():
            raise ValueError(f"{path}: the statements are {names}")
        given = {*values, *(name for kind, name, *_ in texts if kind == "part")}
        if unused := given - set(_PLACEHOLDER.findall("".join(found[3::4]))):
            raise ValueError(f"{path}: no statement uses {sorted(unused)}")
        known = {**shared, **values}
        for kind, name, left, text in texts:
            later = {word: f"@{word}@" for word in (left or "").split(", ")}
            filled = fill(_COMMENT.sub("", text).strip(), known | later)
            if kind == "part":
                known[name] = filled
            else:
                setattr(cls, name, filled)


def fill(text: str, values: Mapping[str, str]) -> str:
    """
    Replace each `@name@` by the value of that name, which must be text of the code, because it is not escaped.

    Raises:
        KeyError: a name has no value.
    """
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def literals(*values: str) -> str:
    """Return names of the code, such as statuses, as a list for `IN (…)`; they are not escaped."""
    return ", ".join(f"'{value}'" for value in values)
