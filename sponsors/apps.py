"""The app's configuration."""

from django.apps import AppConfig


class SponsorsConfig(AppConfig):
    """Sponsors. When an account is deleted, its memberships end; when it is banned, its own sponsors are frozen."""

    name = "sponsors"

    def ready(self) -> None:
        from credits.services import causes
        from sponsors.services import budgets, funding, self_service  # noqa: F401 - register kinds of requests
        from sponsors.services.causes import Sql
        from users.services import bans, deletion

        bans.at_ban("sponsors", self_service.freeze_of_banned)
        causes.register("sponsors", caused=Sql.caused, rules=Sql.rules)
        deletion.register("sponsors", deletion.AppDeletion(erase=self_service.forget))
