"""Reads the sources of messages to sponsors' endpoints: their credits, and the calls that they pay for."""

from collections.abc import Iterable

from django.db.models import Exists, F, OuterRef

from credits.models import CreditEntry, EntrySource, HoldStatus
from relay.models import RelayTransaction, ReversedSettlement
from sponsors.models import PolicyVersion, SponsoredCall, Verifier
from sponsors.queries.figures import user_reference
from webhooks.models import Endpoint, Subject
from webhooks.payloads import Event, sponsors
from webhooks.queries import Audience, Span, first_hashes

_OF_CALLS = (EntrySource.RELAY_TRANSACTION, EntrySource.RELAY_REVERSAL)


def posted_to_sponsors(span: Span) -> list[tuple[int, Event]]:
    """Return the entries of the interval except those of calls, of sponsors with endpoints, with each sponsor's id."""
    entries = CreditEntry.objects.filter(created_at__gte=span.since, created_at__lt=span.until)
    visible = entries.filter(Exists(Endpoint.objects.enabled().filter(sponsor=OuterRef("account__sponsor"))))
    rows = visible.exclude(source__in=_OF_CALLS).select_related("account__sponsor")
    return [
        (row.account.sponsor.pk, sponsors.of_entry(row, sponsor=row.account.sponsor))
        for row in rows.order_by("pk")
        if row.account.sponsor is not None
    ]


def failing_servers(span: Span) -> list[Verifier]:
    """Return the sponsors' servers whose outage was announced in the interval, and that still decide."""
    rows = Verifier.objects.filter(announced_at__gte=span.since, announced_at__lt=span.until, removed_at=None)
    return list(rows.select_related("sponsor").order_by("pk"))


def sponsored_calls(span: Span, audience: Audience) -> list[Subject]:
    """Return the subjects, not stored yet, of the calls accepted in the interval whose sponsor has an endpoint."""
    endpoints = [row for row in audience.endpoints if row.sponsor_id is not None]
    # The ids are passed as a list, so that PostgreSQL uses the index of each version's calls by time.
    versions = PolicyVersion.objects.filter(policy__sponsor__in={row.sponsor_id for row in endpoints})
    calls = SponsoredCall.objects.filter(
        version__in=list(versions.values_list("pk", flat=True)),
        accepted_at__gte=span.since,
        accepted_at__lt=span.until,
    )
    followed = Subject.objects.filter(kind=Subject.Kind.SPONSORED, row_id=OuterRef("pk"))
    unread = calls.filter(~Exists(followed), user__deletion=None)
    rows = unread.annotate(sponsor=F("version__policy__sponsor")).order_by("pk")
    return [
        Subject(
            endpoint=endpoint,
            user_id=user_id,
            kind=Subject.Kind.SPONSORED,
            row_id=call_id,
            changed_at=accepted_at,
        )
        for call_id, user_id, accepted_at, sponsor_id in rows.values_list(
            "pk", "user_id", "accepted_at", "sponsor"
        )
        for endpoint in endpoints
        if endpoint.sponsor_id == sponsor_id and endpoint.enabled_at <= accepted_at
    ]


def settled_sponsored_calls() -> set[int]:
    """Return the ids of ended calls for whose end an endpoint of their sponsor has no message yet."""
    followed = Subject.objects.filter(
        kind=Subject.Kind.SPONSORED, is_open=True, row_id=OuterRef("pk"), endpoint__disabled_at=None
    )
    ended = SponsoredCall.objects.filter(Exists(followed)).exclude(sponsor_hold__status=HoldStatus.HELD)
    in_progress = RelayTransaction.objects.in_progress().filter(hold=OuterRef("hold"))
    return set(ended.exclude(Exists(in_progress)).values_list("pk", flat=True))


def reversed_sponsored_calls(span: Span) -> set[int]:
    """Return the ids of the sponsored calls whose settlement was reversed in the interval."""
    rows = ReversedSettlement.objects.filter(reversed_at__gte=span.since, reversed_at__lt=span.until)
    holds = rows.values("relay_transaction__hold")
    return set(SponsoredCall.objects.filter(hold__in=holds).values_list("pk", flat=True))


def sponsored_histories(call_ids: Iterable[int]) -> dict[int, list[Event]]:
    """Return the events of each of these sponsored calls, in order, by the sponsored call's id."""
    calls = (
        SponsoredCall.objects.filter(pk__in=list(call_ids))
        .select_related(
            "version__policy__sponsor",
            "sponsor_hold",
            "voucher",
            "hold__relay_transaction",
            "first_credits__hold",
        )
        .defer("hold__relay_transaction__payload", "hold__relay_transaction__signature")
        .prefetch_related("hold__relay_transaction__reversed_settlements")
    )
    relayed = {call.pk: call.hold.relay_transaction for call in calls}
    answered = first_hashes(row.pk for row in relayed.values())
    return {
        call.pk: sponsors.history_of(
            call,
            user=user_reference(call.version.policy.sponsor, call.user_id),
            first_hash=answered.get(relayed[call.pk].pk, relayed[call.pk].transaction_hash),
            reversals=sorted(relayed[call.pk].reversed_settlements.all(), key=lambda row: row.number),
        )
        for call in calls
    }
