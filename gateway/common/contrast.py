"""The contrast of colours by WCAG 2.2: whether a text in one colour can be read on another."""

import re
from collections.abc import Sequence

# Level AA, for text of normal size.
READABLE = 4.5
_HEX = re.compile(r"#[0-9a-f]{6}")


def is_colour(text: str) -> bool:
    """Return whether a text is a colour in lower case, such as `#0f6f68`."""
    return _HEX.fullmatch(text) is not None


def mixed(colour: str, ground: str, *, percent: int) -> str:
    """Return a ground that is tinted with `percent` of a colour."""
    pairs = zip(_channels(colour), _channels(ground), strict=True)
    return "#" + "".join(
        f"{round((own * percent + below * (100 - percent)) / 100):02x}" for own, below in pairs
    )


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def unreadable(colour: str, grounds: Sequence[str]) -> list[str]:
    """Return the grounds on which a text in this colour is too faint."""
    return [ground for ground in grounds if contrast(colour, ground) < READABLE]


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def _luminance(colour: str) -> float:
    parts = (channel / 255 for channel in _channels(colour))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
