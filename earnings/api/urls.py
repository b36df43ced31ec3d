"""Routes of earnings; each works with and without a trailing slash."""

from django.urls import re_path

from earnings.api.views import AdNetworksView, PostbackView
from earnings.networks.base import LONGEST_PATH_TOKEN

urlpatterns = [
    re_path(
        r"^api/postbacks/(?P<network>[a-z0-9-]{1,40})"
        rf"/(?P<token>[A-Za-z0-9._-]{{1,{LONGEST_PATH_TOKEN}}})/?$",
        PostbackView.as_view(),
    ),
    re_path(r"^api/user/adNetworks/?$", AdNetworksView.as_view()),
]
