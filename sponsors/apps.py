"""The app's configuration."""

from django.apps import AppConfig


class SponsorsConfig(AppConfig):
    """Sponsors. When an account is deleted, its memberships end."""

    name = "sponsors"

    def ready(self) -> None:
        from credits.services import causes
        from sponsors.services import funding, members  # noqa: F401 - `funding` registers a kind of request
        from sponsors.services.causes import Sql
        from users.services import deletion

        causes.register("sponsors", rules=Sql.rules)
        deletion.register("sponsors", deletion.AppDeletion(erase=members.forget))
