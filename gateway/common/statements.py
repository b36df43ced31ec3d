"""
SQL statements that stand in a `.sql` file beside the module that executes them.

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
"""

import inspect
import re
from collections.abc import Mapping
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*\n?", re.MULTILINE)
_PLACEHOLDER = re.compile(r"@(\w+)@")


class Statements:
    """The statements of one file, each an attribute."""

    def __init_subclass__(cls, *, file: str | Path, **values: str) -> None:
        """
        Read the statements of the `.sql` file that stands beside `file` and has its name.

        Raises:
            KeyError: a statement has an `@name@` without a value.
            ValueError: the file has other statements than the class, or two of one name, or does not use a value.
        """
        path = Path(file).with_suffix(".sql")
        before, *parts = _NAME.split(path.read_text())
        names, texts = parts[::2], parts[1::2]
        if sorted(names) != sorted(inspect.get_annotations(cls)) or _COMMENT.sub("", before).strip():
            raise ValueError(f"{path}: the statements are {sorted(names)}")
        if unused := values.keys() - set(_PLACEHOLDER.findall("".join(texts))):
            raise ValueError(f"{path}: no statement uses {sorted(unused)}")
        for name, text in zip(names, texts, strict=True):
            setattr(cls, name, fill(_COMMENT.sub("", text).strip(), values))


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
