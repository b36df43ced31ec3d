"""The app's configuration."""

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

from gateway.common import clock

if TYPE_CHECKING:
    from users.models import User


def _open_account(*, user: "User", **_: Any) -> None:
    from credits.services import debts
    from credits.services.entries import open_account

    account = open_account(user_id=user.pk)
    debts.return_to(account, profile_address=str(user.profile_address))


class CreditsConfig(AppConfig):
    """The ledger. A new user gets an account, with the debts of deleted ones, in the transaction of its creation."""

    name = "credits"

    def ready(self) -> None:
        from credits import checks, metrics  # noqa: F401 - register on import, and need the loaded models
        from credits.services import debts
        from users.models import user_created
        from users.services import deletion

        deletion.register(
            "credits", deletion.AppDeletion(erase=lambda user: debts.remember(user, clock.now()))
        )
        user_created.connect(_open_account, dispatch_uid="credits.open_account")
