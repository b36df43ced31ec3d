"""Sponsors and their policies in the admin: one person opens a sponsor; funds and terms need a second approval."""

from gateway.admin import navigation
from sponsors.admin import calls, members, policies, sponsors

__all__ = ["calls", "members", "policies", "sponsors"]

navigation.register(
    "Sponsors",
    {
        "sponsors.Sponsor": "volunteer_activism",
        "sponsors.Member": "group",
        "sponsors.ApiKey": "key",
        "sponsors.Policy": "rule",
        "sponsors.PolicyVersion": "history_edu",
        "sponsors.VoucherSigner": "signature",
        "sponsors.Verifier": "fact_check",
        "sponsors.SponsoredCall": "send",
        "sponsors.Usage": "data_usage",
        "sponsors.RefusalCount": "block",
    },
)
