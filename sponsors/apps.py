"""The app's configuration."""

from django.apps import AppConfig


class SponsorsConfig(AppConfig):
    """Sponsors. When an account is deleted, its memberships end."""

    name = "sponsors"

    def ready(self) -> None:
        from sponsors.services import funding, members  # noqa: F401 - `funding` registers a kind of request
        from users.services import deletion

        deletion.register("sponsors", deletion.AppDeletion(erase=members.forget))
