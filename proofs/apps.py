"""The app's configuration."""

from django.apps import AppConfig


class ProofsConfig(AppConfig):
    """Signed roots over the ledger. The app erases its texts when the owner of an account deletes it."""

    name = "proofs"

    def ready(self) -> None:
        from proofs import metrics  # noqa: F401 - registers on import, and needs the loaded models
        from proofs.services import erasure
        from users.services import deletion

        deletion.register(
            "proofs",
            deletion.AppDeletion(
                waits_for=lambda user, now: erasure.reason_to_wait(user),
                erase=lambda user: erasure.erase(user=user),
            ),
        )
