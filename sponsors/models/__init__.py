"""Sponsors: members and keys, policies and their usage."""

from sponsors.models.members import ApiKey, BudgetUse, Member, MemberSession, Sponsor
from sponsors.models.policies import (
    FOLLOWS,
    FUNCTIONS,
    PROFILE,
    Policy,
    PolicyVersion,
    ProfileRule,
    Purpose,
    RefusalCount,
    RefusedRequest,
    SponsoredCall,
    Usage,
    UsageScope,
    UsedVoucher,
    Verifier,
    VoucherSigner,
)

__all__ = [
    "FOLLOWS",
    "FUNCTIONS",
    "PROFILE",
    "ApiKey",
    "BudgetUse",
    "Member",
    "MemberSession",
    "Policy",
    "PolicyVersion",
    "ProfileRule",
    "Purpose",
    "RefusalCount",
    "RefusedRequest",
    "Sponsor",
    "SponsoredCall",
    "Usage",
    "UsageScope",
    "UsedVoucher",
    "Verifier",
    "VoucherSigner",
]
