"""The wiring of the credit relay gateway: settings, routes and workers, above its admin kit and chain access."""

from gateway.celery import app as celery_app

__all__ = ["celery_app"]
