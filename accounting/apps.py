"""The app's configuration."""

from django.apps import AppConfig


class AccountingConfig(AppConfig):
    """Months of accounting, across all apps that move credits or money."""

    name = "accounting"

    def ready(self) -> None:
        from accounting import queries
        from accounting.services import closing  # noqa: F401 - registers the kind of request on import
        from relay.queries import prices

        prices.register_rates(queries.recorded_rates)
