"""The app's configuration."""

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from users.models import User


def _open_progress(*, user: "User", **_: Any) -> None:
    from rewards.services.experience import open_progress

    open_progress(user_ids=[user.pk])


class RewardsConfig(AppConfig):
    """Badges, experience, modifiers, cashback. A new user gets a progress row in the same transaction."""

    name = "rewards"

    def ready(self) -> None:
        from credits.services import causes
        from credits.services.reconciliation import add_rules
        from rewards.services.causes import Sql as Causes
        from rewards.services.statements import Sql
        from users.models import user_created

        add_rules("cashback", Sql.cashback_rules)
        causes.register("rewards", caused=Causes.caused, rules=Causes.rules)
        user_created.connect(_open_progress, dispatch_uid="rewards.open_progress")
