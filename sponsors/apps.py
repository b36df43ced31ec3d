"""The app's configuration."""

from typing import TYPE_CHECKING

from django.apps import AppConfig

if TYPE_CHECKING:
    from users.models import User


class SponsorsConfig(AppConfig):
    """
    Sponsors, with the kinds of requests that fund them.

    When an account is deleted, its memberships end and its waiting transfers are refused.
    """

    name = "sponsors"

    def ready(self) -> None:
        from credits.services.reconciliation import add_rules
        from sponsors.services import (
            funding,  # noqa: F401 - registers the kind of request on import
            members,
            transfers,
        )
        from users.services import deletion

        add_rules("transfers", transfers.RULES)

        def erase(user: "User") -> None:
            members.forget(user)
            transfers.forget(user)

        deletion.register("sponsors", deletion.AppDeletion(erase=erase))
