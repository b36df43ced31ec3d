"""The wiring of the credit relay gateway: settings, routes, workers, and the two lowest floors."""

from gateway.celery import app as celery_app

__all__ = ["celery_app"]
