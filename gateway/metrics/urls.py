"""The route of the metrics; it works with and without a trailing slash."""

from django.urls import re_path

from gateway.metrics.views import MetricsView

urlpatterns = [re_path(r"^metrics/?$", MetricsView.as_view())]
