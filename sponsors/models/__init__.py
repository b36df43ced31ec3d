"""Sponsors: members and keys, policies and their usage, and transfers of credits to sponsors."""

from sponsors.models.members import ApiKey, Member, MemberSession, Sponsor
from sponsors.models.policies import (
    FOLLOWS,
    FUNCTIONS,
    PROFILE,
    Policy,
    PolicyVersion,
    ProfileRule,
    RefusalCount,
    SponsoredCall,
    Usage,
    UsageScope,
    UsedVoucher,
    Verifier,
    VoucherSigner,
)
from sponsors.models.transfers import Transfer, TransferredLot

__all__ = [
    "FOLLOWS",
    "FUNCTIONS",
    "PROFILE",
    "ApiKey",
    "Member",
    "MemberSession",
    "Policy",
    "PolicyVersion",
    "ProfileRule",
    "RefusalCount",
    "Sponsor",
    "SponsoredCall",
    "Transfer",
    "TransferredLot",
    "Usage",
    "UsageScope",
    "UsedVoucher",
    "Verifier",
    "VoucherSigner",
]
