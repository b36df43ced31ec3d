"""Routes of payments; each works with and without a trailing slash."""

from django.urls import re_path

from payments.api import views
from payments.api.views import stripe_webhook

urlpatterns = [
    re_path(r"^api/payments/createCustomer/?$", views.CreateCustomerView.as_view()),
    re_path(r"^api/payments/getSetupIntent/?$", views.SetupIntentView.as_view()),
    re_path(r"^api/payments/upsertSubscription/?$", views.UpsertSubscriptionView.as_view()),
    re_path(r"^api/payments/cancelSubscription/?$", views.CancelSubscriptionView.as_view()),
    re_path(r"^webhooks/stripe/?$", stripe_webhook),
]
