from gateway.common.errors import DomainError


class ModifierEnded(DomainError):
    """The modifier is not active, so it cannot be ended."""

    code, title, status = "modifier-ended", "The modifier is not active", 409

    def __init__(self) -> None:
        super().__init__("It has already ended. Nothing was changed.")


class InvalidLevels(DomainError):
    """The change would leave a gap or an overlap in the track's levels, or remove its lowest or highest badge."""

    code, title, status = "levels-broken", "The levels would be invalid", 422
