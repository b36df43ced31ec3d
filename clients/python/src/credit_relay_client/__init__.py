"""Relay calls of Universal Profiles through a credit relay gateway."""

from credit_relay_client.calls import Call, RelayCall, encode_calls, personal_sign, quota_message, sign_hash
from credit_relay_client.creation import create_profile, register_profile, requested_profile
from credit_relay_client.relay import PreparedCall, Relay, SentTransaction, Work, connect
from credit_relay_client.schema import ProblemCode
from credit_relay_client.service import Node, RelayProblem, Service, ServiceUnreachable
from credit_relay_client.session import Session

__all__ = [
    "Call",
    "Node",
    "PreparedCall",
    "ProblemCode",
    "Relay",
    "RelayCall",
    "RelayProblem",
    "SentTransaction",
    "Service",
    "ServiceUnreachable",
    "Session",
    "Work",
    "connect",
    "create_profile",
    "encode_calls",
    "personal_sign",
    "quota_message",
    "register_profile",
    "requested_profile",
    "sign_hash",
]
