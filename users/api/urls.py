"""Routes of sign-in and of the dashboard; each works with and without a trailing slash."""

from django.urls import re_path

from portal.api import views as portal_api_views
from users.api import views as users_api_views

urlpatterns = [
    re_path(r"^api/auth/nonce/?$", users_api_views.NonceView.as_view()),
    re_path(r"^api/auth/verify/?$", users_api_views.VerifyView.as_view()),
    re_path(r"^api/auth/refresh/?$", users_api_views.RefreshView.as_view()),
    re_path(r"^api/auth/logout/?$", users_api_views.LogoutView.as_view()),
    re_path(r"^api/auth/me/?$", users_api_views.MeView.as_view()),
    re_path(r"^\.well-known/jwks\.json/?$", users_api_views.KeysView.as_view()),
    re_path(r"^api/user/dashboardInfo/?$", portal_api_views.DashboardView.as_view()),
    re_path(r"^api/user/earnings/?$", portal_api_views.EarningsView.as_view()),
    re_path(r"^api/user/transactions/?$", portal_api_views.TransactionsView.as_view()),
]
