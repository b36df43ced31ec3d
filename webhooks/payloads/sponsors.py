"""The payloads of messages about sponsors: their credits, and the calls that they paid for."""

from collections.abc import Sequence
from datetime import datetime

from credits.models import CreditEntry, HoldStatus
from relay.models import RelayStatus, RelayTransaction, ReversedSettlement
from sponsors.models import Member, ProfileRule, Sponsor, SponsoredCall
from sponsors.queries.figures import ProfileNumber
from sponsors.rules.policies import sponsor_part
from webhooks.models import EventType, SponsorLevel, Subject
from webhooks.payloads import NO_USER, Data, Event


def of_level(
    level: SponsorLevel, *, sponsor: Sponsor, balance: int, at: datetime, member: Member | None = None
) -> Event:
    """Return the event that a sponsor's credits have crossed its alarm, for a member or for the sponsor's endpoints."""
    data: Data = {"sponsor": sponsor.slug, "credits": balance, "alarm": sponsor.alarm_credits}
    if member is not None:
        data["address"] = str(member.user.profile_address)
    event_type = EventType.SPONSOR_LOW if level.is_low else EventType.SPONSOR_RECOVERED
    user_id = member.user_id if member else NO_USER
    key = f"sponsor:{sponsor.pk}:{level.crossings}:{user_id}"
    return Event(event_type, user_id, at, key, f"sponsor:{sponsor.pk}", data)


def of_number(row: ProfileNumber, *, percent: int, at: datetime, owner_id: int = NO_USER) -> Event:
    """
    Return the event that a policy has used this part of a number of new profiles, for an owner or for the endpoints.

    Owners have one event for each UTC day and part at most, however short the windows are.
    """
    policy = row.version.policy
    data: Data = {
        "sponsor": policy.sponsor.slug,
        "policy": policy.name,
        "version": row.version.number,
        "percent": percent,
        "number": row.number,
        "used": row.used,
        "windowEndsAt": None if row.ends_at is None else int(row.ends_at.timestamp()),
    }
    begins = f"{row.begins:%Y%m%d}" if owner_id else f"{row.begins:%Y%m%dT%H%M%S}"
    key = f"profiles:{policy.pk}:{row.scope}:{begins}:{row.number}:{percent}:{owner_id}"
    return Event(EventType.SPONSOR_PROFILES_LOW, owner_id, at, key, f"sponsor:{policy.sponsor_id}", data)


def of_entry(entry: CreditEntry, *, sponsor: Sponsor) -> Event:
    """Return the event of a sponsor's entry other than that of a call."""
    data = {
        "sponsor": sponsor.slug,
        "creditSource": entry.source,
        "creditsEarned": entry.amount,
        "creditsBefore": entry.balance_before,
        "creditsAfter": entry.balance_after,
    }
    key, ordering_key = f"entry:{entry.pk}", f"sponsor:{sponsor.pk}"
    return Event(EventType.SPONSOR_POSTED, NO_USER, entry.created_at, key, ordering_key, data)


def history_of(
    call: SponsoredCall, *, user: str, first_hash: str, reversals: Sequence[ReversedSettlement]
) -> list[Event]:
    """
    Return the events of a sponsored call, in order; none before its first end.

    `user` is the user's id in the sponsor's figures. `reversals` are the reversed settlements, in order. Events of new
    profiles have their first credits.
    """
    relayed, hold = call.hold.relay_transaction, call.sponsor_hold
    who = _who(call, relayed, user=user, first_hash=first_hash)
    events = []
    for row in reversals:
        part = sponsor_part(row.real_cost, share_percent=call.version.share_percent)
        undone = {"status": row.status, "credits": min(part, hold.amount), "entryId": None}
        undone |= _first_credits(call, relayed, row.status)
        reopened = {"status": RelayStatus.SUBMITTED.value, "credits": hold.amount, "entryId": None}
        events += [
            _of(call, _end_of(relayed, row.status), row.settled_at, who | undone, row.number),
            _of(call, EventType.SPONSOR_CALL_REOPENED, row.reversed_at, who | reopened, row.number),
        ]
    # A hold that an older version's worker has left open is closed within a minute.
    if relayed.settled_at is not None and hold.status != HoldStatus.HELD:
        outcome = {"status": relayed.status, "credits": hold.captured_amount or 0, "entryId": hold.entry_id}
        outcome |= _first_credits(call, relayed, relayed.status)
        kind = _end_of(relayed, relayed.status)
        events.append(_of(call, kind, relayed.settled_at, who | outcome, len(reversals)))
    return events


def _first_credits(call: SponsoredCall, relayed: RelayTransaction, status: str) -> Data:
    if not relayed.deploys_profile:
        return {}
    gift = getattr(call, "first_credits", None)
    # Closed without a charge: the account was deleted meanwhile.
    is_given = gift is not None and gift.digest is not None and gift.hold.status != HoldStatus.RELEASED
    return {
        "firstCredits": gift.hold.amount if gift and is_given and status in RelayTransaction.EXECUTED else 0
    }


def _end_of(relayed: RelayTransaction, status: str) -> EventType:
    if not relayed.deploys_profile:
        return EventType.SPONSOR_CALL_SETTLED
    is_there = status in RelayTransaction.EXECUTED
    return EventType.SPONSOR_PROFILE_CREATED if is_there else EventType.SPONSOR_PROFILE_FAILED


def _who(call: SponsoredCall, relayed: RelayTransaction, *, user: str, first_hash: str) -> Data:
    """
    Name the call and its user.

    If the sponsor's server has requested this profile, has signed a voucher for it, or was asked about this call, it
    gets both by name.
    For other calls it gets only the user's pseudonym from its figures; a transaction hash would reveal the profile.
    """
    rule, policy = call.version.profiles, call.version.policy
    is_known = relayed.deploys_profile or rule in {ProfileRule.VOUCHED, ProfileRule.VERIFIED}
    voucher = getattr(call, "voucher", None)
    return {
        "sponsor": policy.sponsor.slug,
        "callId": call.pk,
        "policy": policy.name,
        "version": call.version.number,
        "user": None if is_known else user,
        "transactionSenderAddress": relayed.profile_address if is_known else None,
        "transactionHash": first_hash if is_known else None,
        "hash": relayed.digest if is_known else None,
        "voucherId": voucher.voucher_id if voucher else None,
    }


def _of(call: SponsoredCall, kind: EventType, at: datetime, data: Data, number: int) -> Event:
    ordering_key = f"{Subject.Kind.SPONSORED.value}:{call.pk}"
    return Event(kind, call.user_id, at, f"{ordering_key}:{kind.value}:{number}", ordering_key, data)
