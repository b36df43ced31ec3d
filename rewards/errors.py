from gateway.common.errors import DomainError


class ModifierEnded(DomainError):
    """Only a modifier that is in force can be ended, and once."""

    code, title, status = "modifier-ended", "The modifier is not in force", 409

    def __init__(self) -> None:
        super().__init__("It has ended already. Nothing was changed.")


class InvalidLevels(DomainError):
    """The change would leave a track's levels with a gap, an overlap, or without the lowest or highest badge."""

    code, title, status = "levels-broken", "The levels would be broken", 422
