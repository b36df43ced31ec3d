"""The app's configuration."""

from django.apps import AppConfig


class UsersConfig(AppConfig):
    """Sign-in, with its system checks and its part of the OpenAPI document."""

    name = "users"

    def ready(self) -> None:
        # These modules need the loaded models, and register themselves when they are imported.
        from users import checks, metrics  # noqa: F401
        from users.api import schema  # noqa: F401
