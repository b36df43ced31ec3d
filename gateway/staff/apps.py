"""Approvals, pauses and the audit log, as services need them; their pages are in `gateway.admin`."""

from django.apps import AppConfig


class StaffConfig(AppConfig):
    """Keeps the label `gateway_admin`, which tables, permissions, pages and tasks are named after."""

    name = "gateway.staff"
    label = "gateway_admin"
    verbose_name = "Admin"
