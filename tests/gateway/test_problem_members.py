"""Whatever member a refusal adds to its problem document, the page of its code names it."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from gateway import urls
from gateway.chain.mistakes import SignatureMistake
from gateway.common.errors import DomainError, all_errors
from gateway.common.problems import description_of

assert urls.urlpatterns, "the routes import every error that they can return"
_PACKAGES = ("gateway", "users", "credits", "payments", "relay", "checkin")
# What the constructor takes and no document shows.
_NOT_SHOWN = {"detail", "retry_after"}
_REFUSALS = {refusal.__name__: refusal for refusal in all_errors()}


def _trees() -> Iterator[ast.Module]:
    for package in _PACKAGES:
        for path in sorted(Path(settings.BASE_DIR, package).rglob("*.py")):
            yield ast.parse(path.read_text())


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _keywords(call: ast.Call) -> set[str]:
    return {keyword.arg for keyword in call.keywords if keyword.arg} - _NOT_SHOWN


def _members() -> dict[str, set[str]]:
    """Return the members by the name of the refusal, as the code that raises it writes them down."""
    members: dict[str, set[str]] = defaultdict(set)
    for tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name in _REFUSALS:
                for call in (inner for inner in ast.walk(node) if isinstance(inner, ast.Call)):
                    if _name(call.func) == "__init__":
                        members[node.name] |= _keywords(call)
            elif isinstance(node, ast.Call) and "__init__" not in _own(_name(node.func)):
                members[_name(node.func)] |= _keywords(node)
    return members


def _own(name: str) -> dict[str, object]:
    return dict(_REFUSALS[name].__dict__) if name in _REFUSALS else {}


_MEMBERS = _members()


def _members_of(refusal: type[DomainError]) -> set[str]:
    # A mistake in a signature is raised by a method that its table of hashes names.
    return _MEMBERS["refusal"] if issubclass(refusal, SignatureMistake) else _MEMBERS[refusal.__name__]


def test_the_page_of_a_code_names_every_member_that_it_adds() -> None:
    unnamed = {
        (refusal.code, member)
        for refusal in _REFUSALS.values()
        for member in _members_of(refusal)
        if f"`{member}`" not in description_of(refusal)
    }

    assert unnamed == set()


def test_members_are_found_wherever_they_are_written() -> None:
    assert _MEMBERS["InsufficientCredits"] == {"required", "available", "debtLimit"}
    assert _MEMBERS["ValidityTooShort"] == {"minimumSeconds", "validUntil", "serverTime"}
    assert _MEMBERS["RequestTooLarge"] == {"maximumBytes"}
    assert _MEMBERS["FeesTooHigh"] == {
        *("pricePerGasWei", "maximumPricePerGasWei"),
        *("extraFeeWei", "maximumExtraFeeWei"),
    }
    assert "controller" in _MEMBERS["refusal"]
    assert sum(1 for name in _REFUSALS if _MEMBERS[name]) > 30
