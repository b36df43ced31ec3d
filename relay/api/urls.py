"""Routes of the relay; each works with and without a trailing slash."""

from django.urls import re_path

from relay.api.lsp15 import Lsp15ExecuteView, Lsp15QuotaView
from relay.api.views import ExecuteView, QuotaView, TransactionStatusView

urlpatterns = [
    re_path(r"^api/relay/execute/?$", ExecuteView.as_view()),
    re_path(r"^api/relay/quota/?$", QuotaView.as_view()),
    re_path(r"^api/relay/transactionStatus/?$", TransactionStatusView.as_view()),
    re_path(r"^api/lsp15/execute/?$", Lsp15ExecuteView.as_view()),
    re_path(r"^api/lsp15/quota/?$", Lsp15QuotaView.as_view()),
]
