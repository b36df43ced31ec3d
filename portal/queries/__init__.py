"""Sponsors' spend by contract, and their newest calls and refusals, read from the payloads of calls."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gateway.chain.config import home
from gateway.common import db
from gateway.common.fields import checksum
from gateway.common.statements import Statements
from relay.models import RelayTransaction
from sponsors.models import PolicyVersion, RefusedRequest, Sponsor, SponsoredCall
from sponsors.rules.calls import NO_FUNCTION, Action, Unreadable, actions_of

# The number of contracts to list, those with the highest spend.
MOST_CONTRACTS = 100


class _Sql(Statements, file=__file__):
    contracts: str


class SpentOnContract(NamedTuple):
    """Credits and calls of a contract's address, or of `batch`, `profile`, `deployment` and `new-profile`."""

    contract: str
    credits: int
    calls: int


def contracts_of(sponsor: Sponsor, *, since: datetime) -> list[SpentOnContract]:
    """Return the spend for calls accepted since a time, by the contract that each calls first, highest first."""
    params = {"sponsor": sponsor.pk, "since": since, "limit": MOST_CONTRACTS}
    rows = [SpentOnContract(*row) for row in db.all_rows(_Sql.contracts, params)]
    return [
        row._replace(contract=checksum(row.contract)) if row.contract.startswith("0x") else row
        for row in rows
    ]


# The contract of an action that creates the profile.
NEW_PROFILE = "new-profile"
# The number of calls and refusals to list, the newest.
MOST_REQUESTS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SponsorRequest:
    """
    A call that a sponsor paid, or did not pay.

    A paid one has a status, and the transaction's hash until its account is deleted. A refused one has the `rule`, and
    what the sponsor's server gave instead of a valid response. `actions` is empty if the payload does not decode.
    """

    at: datetime
    chain_id: int
    actions: tuple[Action, ...]
    policy: str
    credits: int
    transaction_hash: str | None = None
    status: str | None = None
    rule: str | None = None
    server_response: str = ""
    requests: int = 1


def requests_of(sponsor: Sponsor, *, paid: bool = True, refused: bool = True) -> list[SponsorRequest]:
    """Return the newest calls that the sponsor paid, and the newest that it refused, together newest first."""
    rows = [
        *(map(_paid, paid_calls(sponsor, MOST_REQUESTS)) if paid else ()),
        *(map(_refused, refused_requests(sponsor, MOST_REQUESTS)) if refused else ()),
    ]
    return sorted(rows, key=lambda row: row.at, reverse=True)[:MOST_REQUESTS]


def paid_calls(sponsor: Sponsor, number: int) -> list[SponsoredCall]:
    """Return the newest calls that the sponsor pays for, each with its relay transaction."""
    versions = PolicyVersion.objects.filter(policy__sponsor=sponsor).values_list("pk", flat=True)
    calls = SponsoredCall.objects.filter(version__in=list(versions)).order_by("-accepted_at", "-pk")
    related = calls.select_related("version__policy", "hold__relay_transaction", "sponsor_hold", "user")
    return list(related[:number])


def refused_requests(sponsor: Sponsor, number: int) -> list[RefusedRequest]:
    """Return the newest requests that the sponsor refused."""
    newest = RefusedRequest.objects.filter(sponsor=sponsor).order_by("-refused_at", "-pk")
    return list(newest.select_related("user")[:number])


def actions_in(call: RelayTransaction) -> tuple[Action, ...]:
    """Return what a call calls; nothing if its payload does not decode, or was deleted with the account."""
    if not call.payload:
        return ()
    if call.deploys_profile:
        return (Action(NEW_PROFILE, NO_FUNCTION),)
    try:
        return actions_of(
            bytes(call.payload), profile=call.profile_address, key_manager=call.key_manager_address
        )
    except Unreadable:
        return ()


def actions_stored(request: RefusedRequest) -> tuple[Action, ...]:
    """Return the first actions of a refused call."""
    return tuple(
        Action(contract, bytes.fromhex(function.removeprefix("0x"))) for contract, function in request.actions
    )


def _paid(call: SponsoredCall) -> SponsorRequest:
    relayed = call.hold.relay_transaction
    return SponsorRequest(
        at=call.accepted_at,
        chain_id=relayed.chain_id,
        actions=actions_in(relayed),
        policy=call.version.policy.name,
        credits=call.counted_credits,
        # The payload of a deleted account is gone, so its hash is not shown either.
        transaction_hash=relayed.transaction_hash if relayed.payload else None,
        status=relayed.status,
    )


def _refused(request: RefusedRequest) -> SponsorRequest:
    return SponsorRequest(
        at=request.refused_at,
        chain_id=request.chain_id or home().id,
        actions=actions_stored(request),
        policy=request.policy,
        credits=request.credits,
        rule=request.rule,
        server_response=request.server_response,
        requests=request.requests,
    )
