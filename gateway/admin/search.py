"""
Find users by their profile's address: complete, its beginning, its end, or both.

Wallets show profiles as `name#1234`, with the four digits after 0x. The search ignores the name, since names are not
unique.
"""

import re

from django.contrib.auth import get_user_model
from django.db.models import F, Q, TextField
from django.db.models.functions import Lower, Reverse
from django.db.models.lookups import StartsWith

_FEWEST, MOST = 4, 100
_WHOLE = 40
# Compared as text, because an address field would change the casing of a complete address.
_ADDRESS = Lower(F("profile_address"), output_field=TextField())
# 0x12ab, 12ab, …12ab, and the short form of wallets: 0x12ab…9f3c
_TERM = re.compile(r"(?P<mark>0x)?(?P<begin>[0-9a-f]*)(?P<gap>…|\.{2,3})?(?P<end>[0-9a-f]*)")
# A name and at least four digits after 0x.
_NAMED = re.compile(r"@?[^#]*#(?P<begin>[0-9a-f]{4,40})")


def address_like(term: str) -> Q | None:
    """
    Return the condition on `profile_address`; None if the term cannot be part of an address.

    Uses two indexes of `users`, one for beginnings and one for ends.
    """
    lowered = term.strip().lower()
    if named := _NAMED.fullmatch(lowered):
        return _begins(named["begin"])
    match = _TERM.fullmatch(lowered)
    if match is None:
        return None
    begin, end = match["begin"], match["end"]
    if max(len(begin), len(end)) < _FEWEST or len(begin) + len(end) > _WHOLE:
        return None
    if match["gap"]:
        return (_begins(begin) if begin else Q()) & (_ends(end) if end else Q())
    if match["mark"]:
        return _begins(begin)
    return Q(_begins(begin)) | _ends(begin)


def people_like(term: str) -> list[int]:
    """
    Return the ids of the first `MOST` users whose address matches the term.

    Lists filter by these ids, because a condition across a join would read every row.
    """
    condition = address_like(term)
    if condition is None:
        return []
    people = get_user_model()._default_manager.filter(condition).order_by("pk")
    return list(people.values_list("pk", flat=True)[:MOST])


def _begins(digits: str) -> Q:
    return Q(StartsWith(_ADDRESS, f"0x{digits}"))


def _ends(digits: str) -> Q:
    return Q(StartsWith(Reverse(_ADDRESS, output_field=TextField()), digits[::-1]))
