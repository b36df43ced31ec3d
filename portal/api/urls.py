"""Routes of the dashboard and the histories; each works with and without a trailing slash."""

from django.urls import re_path

from portal.api import views

urlpatterns = [
    re_path(r"^api/user/dashboardInfo/?$", views.DashboardView.as_view()),
    re_path(r"^api/user/earnings/?$", views.EarningsView.as_view()),
    re_path(r"^api/user/transactions/?$", views.TransactionsView.as_view()),
]
