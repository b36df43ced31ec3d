"""Routes of payments; each works with and without a trailing slash."""

from django.urls import include, path, re_path

from gateway.common.routers import ApiRouter
from payments.api.views import PaymentsViewSet, stripe_webhook

router = ApiRouter()
router.register("api/payments", PaymentsViewSet, basename="payments")

urlpatterns = [
    path("", include(router.urls)),
    re_path(r"^webhooks/stripe/?$", stripe_webhook),
]
