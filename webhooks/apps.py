"""The app's configuration."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "webhooks"

    def ready(self) -> None:
        from sponsors.services import members
        from users.services import deletion
        from webhooks import metrics  # noqa: F401 - registers on import, and needs the loaded models
        from webhooks.services.endpoints import disable_of_maker
        from webhooks.services.messages import forget

        deletion.register("webhooks", deletion.AppDeletion(erase=forget))
        members.at_end("webhooks", disable_of_maker)
