"""The app's configuration."""

from django.apps import AppConfig


class AccountingConfig(AppConfig):
    """Months of accounting, across all apps that move credits or money."""

    name = "accounting"

    def ready(self) -> None:
        from accounting.services import closing  # noqa: F401 - registers the kind of request on import
