"""Django finds the app here."""

from django.apps import AppConfig


class CheckinConfig(AppConfig):
    name = "checkin"
    verbose_name = "check-in"

    def ready(self) -> None:
        from checkin import queries  # needs the loaded models
        from users.services import deletion

        deletion.register("checkin", deletion.AppDeletion(waits_for=queries.spent_attempts_of_today))
