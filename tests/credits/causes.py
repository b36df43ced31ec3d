"""Entries without causes, except those that a test has granted by itself."""

from typing import Any

from credits.models import EntrySource
from credits.services import causes


def differences(*granted: EntrySource) -> list[dict[str, Any]]:
    """Return what the comparison finds, without entries of the sources that the test has posted past every cause."""
    return [
        finding
        for finding in causes.find_differences()
        if finding["rule"] != "an entry has a cause" or finding["have"].split()[0] not in granted
    ]


def causeless(*sources: EntrySource) -> list[dict[str, Any]]:
    """Return entries of these sources without their cause, and causes without such an entry."""
    rules = ("an entry has a cause", "a cause has an entry")
    return [
        finding
        for finding in causes.find_differences()
        if finding["rule"] in rules
        and {str(finding[side]).split()[0] for side in ("have", "wanted")} & {*map(str, sources)}
    ]
