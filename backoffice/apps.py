"""The app's configuration."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.db.models.signals import post_migrate


class SecondFactorAdminConfig(AdminConfig):
    """Replaces Django's admin site with one that requires a one-time password."""

    default_site = "backoffice.site.StaffSite"


class BackofficeConfig(AppConfig):
    name = "backoffice"

    def ready(self) -> None:
        from backoffice import privileges, roles
        from gateway.common import sql_functions

        # All other apps come before this one, so their permissions exist by now.
        post_migrate.connect(roles.synchronise, sender=self)
        post_migrate.connect(privileges.grant_to_application, sender=self)
        post_migrate.connect(sql_functions.replace, sender=self)
