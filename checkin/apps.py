"""Django finds the app here."""

from django.apps import AppConfig


class CheckinConfig(AppConfig):
    name = "checkin"
    verbose_name = "check-in"

    def ready(self) -> None:
        from checkin import queries  # needs the loaded models
        from checkin.services import verification
        from checkin.services.causes import Sql
        from credits.services import causes
        from users.services import deletion

        causes.register("checkin", caused=Sql.caused, further=verification.find_differences)
        deletion.register("checkin", deletion.AppDeletion(waits_for=queries.spent_attempts_of_today))
