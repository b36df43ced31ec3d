"""The project package: settings, routes and Celery; below them the admin kit, the web layer and chain access."""

from gateway.celery import app as celery_app

__all__ = ["celery_app"]
