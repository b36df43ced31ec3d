"""The project package: settings, routes and Celery, and the layers below: admin kit, web layer and chain access."""

from gateway.celery import app as celery_app

__all__ = ["celery_app"]
