"""Django finds the staff's static files, and the pages of other packages in our look, here."""

from django.apps import AppConfig


class StaffConfig(AppConfig):
    name = "gateway.staff"
    label = "staff"
    verbose_name = "Staff"
