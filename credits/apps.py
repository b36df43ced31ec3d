"""Django finds the app here."""

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from users.models import User


def _open_account(*, user: "User", **_: Any) -> None:
    from credits.services.entries import open_account

    open_account(user_id=user.pk)


class CreditsConfig(AppConfig):
    """The ledger. Every new user gets an account in the transaction that creates the user."""

    name = "credits"

    def ready(self) -> None:
        from credits import checks, metrics  # noqa: F401 - register on import, and need the loaded models
        from users.models import user_created

        user_created.connect(_open_account, dispatch_uid="credits.open_account")
