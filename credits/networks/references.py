"""The opaque name under which a network knows a user: 32 hex digits, for that network alone."""

import re

from credits.networks.contract import PostbackRefused

REFERENCE_LENGTH = 32
_REFERENCE = re.compile(r"[0-9a-f]{32}", re.ASCII)


def is_reference(text: str) -> bool:
    """Return whether the text has the form of a reference."""
    return _REFERENCE.fullmatch(text) is not None


def require_reference(text: str) -> None:
    """
    Pass where the text has the form of a reference.

    Raises:
        PostbackRefused: we never gave such a name to a network.
    """
    if not is_reference(text):
        raise PostbackRefused("no usable user reference")
