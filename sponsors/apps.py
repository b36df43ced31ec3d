"""The app's configuration."""

from django.apps import AppConfig


class SponsorsConfig(AppConfig):
    """Sponsors, with the kind of request that funds them. The deletion of an account ends its memberships."""

    name = "sponsors"

    def ready(self) -> None:
        from sponsors.services import (
            funding,  # noqa: F401 - registers the kind of request on import
            members,
        )
        from users.services import deletion

        deletion.register("sponsors", deletion.AppDeletion(erase=members.forget))
