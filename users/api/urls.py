"""Routes of sign-in; each works with and without a trailing slash."""

from django.urls import re_path

from users.api import views

urlpatterns = [
    re_path(r"^api/auth/nonce/?$", views.NonceView.as_view()),
    re_path(r"^api/auth/verify/?$", views.VerifyView.as_view()),
    re_path(r"^api/auth/refresh/?$", views.RefreshView.as_view()),
    re_path(r"^api/auth/logout/?$", views.LogoutView.as_view()),
    re_path(r"^api/auth/me/?$", views.MeView.as_view()),
    re_path(r"^\.well-known/jwks\.json/?$", views.KeysView.as_view()),
]
