"""The app's configuration."""

from django.apps import AppConfig


class EarningsConfig(AppConfig):
    name = "earnings"

    def ready(self) -> None:
        from credits.services import causes
        from earnings import metrics  # noqa: F401 - registers on import, and needs the loaded models
        from earnings.services import push  # noqa: F401 - no page imports its kinds of requests
        from earnings.services.causes import Sql
        from earnings.services.earnings import forget
        from users.services import deletion

        causes.register("earnings", caused=Sql.caused, rules=Sql.rules)
        deletion.register("earnings", deletion.AppDeletion(erase=forget))
