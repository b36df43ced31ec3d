"""Approvals, pauses and the audit log: what staff decide, as services need it; pages are in `gateway.admin`."""

from django.apps import AppConfig


class StaffConfig(AppConfig):
    """Carries the label under which tables, permissions, pages and tasks were made, when this was part of the kit."""

    name = "gateway.staff"
    label = "gateway_admin"
    verbose_name = "Admin"
