"""Sponsors: members and keys, policies and their usage."""

from sponsors.models.first_credits import FirstCredits
from sponsors.models.members import ApiKey, BudgetUse, Member, MemberSession, Sponsor
from sponsors.models.policies import (
    FOLLOWS,
    FUNCTIONS,
    MOST_FIRST_DAYS,
    OF_PROFILES,
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
    "MOST_FIRST_DAYS",
    "OF_PROFILES",
    "PROFILE",
    "ApiKey",
    "BudgetUse",
    "FirstCredits",
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
