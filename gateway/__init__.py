"""The wiring of the credit relay gateway: settings, routes and workers; below it the admin kit, the chain, the common."""

from gateway.celery import app as celery_app

__all__ = ["celery_app"]
