"""The app's configuration."""

from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    name = "payments"

    def ready(self) -> None:
        from credits.services import causes
        from payments import checks, metrics  # noqa: F401 - register on import, and need the loaded models
        from payments.services import bans as our_bans
        from payments.services import deletion as ours
        from payments.services.causes import Sql
        from users.services import bans, deletion

        bans.at_ban("payments", our_bans.stop_purchases)
        causes.register("payments", caused=Sql.caused, rules=Sql.rules)
        deletion.register(
            "payments",
            deletion.AppDeletion(
                end=ours.leave_stripe,
                waits_for=lambda user, now: ours.reason_to_wait(user),
                erase=ours.erase,
            ),
        )
