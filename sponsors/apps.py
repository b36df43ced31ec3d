"""The app's configuration."""

from django.apps import AppConfig


class SponsorsConfig(AppConfig):
    """Sponsors, with the kind of request that funds them."""

    name = "sponsors"

    def ready(self) -> None:
        from sponsors.services import funding  # noqa: F401 - registers the kind of request on import
