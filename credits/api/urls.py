"""Routes of earnings; each works with and without a trailing slash."""

from django.urls import re_path

from credits.api.networks import AdNetworksView
from credits.api.postbacks import PostbackView
from credits.networks.contract import LONGEST_PATH_TOKEN

urlpatterns = [
    re_path(
        r"^api/postbacks/(?P<network>[a-z0-9-]{1,40})"
        rf"/(?P<token>[A-Za-z0-9._-]{{1,{LONGEST_PATH_TOKEN}}})/?$",
        PostbackView.as_view(),
    ),
    re_path(r"^api/user/adNetworks/?$", AdNetworksView.as_view()),
]
