"""Every route of the service. API paths work with and without a trailing slash."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from gateway.metrics import MetricsView

# Patterns are tried in order, so the most frequent paths come first.
_CALLS = [path("", include("relay.api.views"))]
_ADMIN = [path("admin/", admin.site.urls), path("admin", RedirectView.as_view(url="/admin/"))]
_SERVICE = [
    path("", include("users.api.views")),
    path("", include("payments.api.views")),
    path("", include("checkin.api.views")),
    path("", include("earnings.api")),
    path("", include("portal.api.views")),
    path("", include("proofs.api")),
    path("", include("sponsors.api.views")),
    path("", include("webhooks.api.views")),
    path("", include("webhooks.pages")),
    path("", include("portal.pages")),
    path("", include("gateway.docs")),
    path("", include("gateway.guides")),
    re_path(r"^metrics/?$", MetricsView.as_view()),
]
urlpatterns = {
    "all": [*_CALLS, *_ADMIN, *_SERVICE],
    "service": [*_CALLS, *_SERVICE],
    "admin": [*_ADMIN, path("", RedirectView.as_view(url="/admin/"))],
}[settings.WEB_SERVES]

handler400 = "gateway.common.problems.malformed"
handler403 = "portal.pages.forbidden"
handler404 = "portal.pages.unknown_path"
handler500 = "portal.pages.broken"
