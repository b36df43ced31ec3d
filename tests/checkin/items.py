"""Items and identities of random content."""

import random
import secrets
from decimal import Decimal

from checkin.draw import DrawIdentity, Drop, Item, step_of
from tests.factories import random_address

TYPES = (
    "EXPERIENCE",
    "CREDITS",
    "BONUS_PUSH_ADS_CREDITS",
    "BONUS_VIDEO_ADS_CREDITS",
    "BONUS_OFFERWALL_CREDITS",
    "BONUS_SURVEYS_CREDITS",
    "BONUS_CREDITS_BACK",
)


def item(drop_type: str, **chosen: object) -> Item:
    """Return an item of that type, random where nothing is chosen."""
    step = step_of(drop_type)
    least = random.randint(1, 400) * step
    made: dict[str, object] = {
        "weight": random.randint(1, 100),
        "least": least,
        "most": least + random.randint(0, 600) * step,
        "minutes": None if drop_type in TYPES[:2] else random.randint(1, 10_000),
    }
    return Item(drop_type=drop_type, **{**made, **chosen})  # type: ignore[arg-type]


def items() -> list[Item]:
    """Return one to nine items of random types."""
    return [item(random.choice(TYPES)) for _ in range(random.randint(1, 9))]


def identity(**chosen: object) -> DrawIdentity:
    """Return a identity, random where nothing is chosen."""
    made: dict[str, object] = {
        "profile_address": random_address(),
        "day": f"2026-{random.randint(1, 12):02}-{random.randint(1, 28):02}",
        "attempt": random.randint(1, 5),
        "tables": ((secrets.randbelow(1000), random.randint(1, 9)),),
    }
    return DrawIdentity(**{**made, **chosen})  # type: ignore[arg-type]


def drop_of(stored: dict[str, object]) -> Drop:
    """Return a drop that a check-in has stored."""
    minutes = stored["minutes"]
    assert minutes is None or isinstance(minutes, int)
    return Drop(drop_type=str(stored["type"]), value=Decimal(str(stored["value"])), minutes=minutes)
