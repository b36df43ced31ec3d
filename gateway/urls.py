"""Every route of the service. API paths work with and without a trailing slash."""

from django.contrib import admin
from django.urls import path

from gateway.health import alive, ready

urlpatterns = [
    path("healthz", alive),
    path("readyz", ready),
    path("admin/", admin.site.urls),
]

handler404 = "gateway.common.problems.unknown_path"
handler500 = "gateway.common.problems.broken"
