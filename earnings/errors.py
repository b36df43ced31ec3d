"""Refusals of earnings."""

from gateway.common.errors import DomainError


class EarningDecided(DomainError):
    """Only a held earning can be released early or forfeited."""

    code, title, status = "earning-decided", "The earning is not held", 409

    def __init__(self, *, state: str) -> None:
        super().__init__(f"The earning is no longer held. {state}.")


class NetworkUnguarded(DomainError):
    """
    A network whose postbacks could be forged can be enabled only with limits.

    A network whose signature omits user, amount or id needs a path token, an address list, both caps and
    a hold; a network whose keys sign for every publisher needs the list of our ad units.
    """

    code, title, status = "network-unguarded", "The network cannot be enabled", 409
