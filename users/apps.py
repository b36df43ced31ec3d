"""Django finds the app here."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class UsersConfig(AppConfig):
    """Sign-in, with its system checks and its part of the API's description."""

    name = "users"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # All need the loaded models; the first two register on import.
        from backoffice import roles
        from users import checks  # noqa: F401
        from users.api import schema  # noqa: F401

        # Our other apps come before this one, so that their permissions are there by now.
        post_migrate.connect(roles.synchronise, sender=self)
