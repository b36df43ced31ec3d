"""What others ask about relaying. Nothing here writes."""

from dataclasses import dataclass

from django.conf import settings
from django.db.models import Max, Q, QuerySet

from gateway.chain.code import code_hash, implementation_of
from gateway.common.owner import ProfileOwner
from relay.errors import TransactionNotFound
from relay.models import RelaySwitch, RelayTransaction, TrustedImplementation


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes two requests the same relay call: the LSP-25 digest and who signed it."""

    digest: str
    controller: str


def code_is_trusted(*, profile_code: bytes, key_manager_code: bytes) -> bool:
    """Return whether both runtime codes belong to active trusted implementations."""
    wanted = _matches(TrustedImplementation.Kind.PROFILE, profile_code) | _matches(
        TrustedImplementation.Kind.KEY_MANAGER, key_manager_code
    )
    kinds = TrustedImplementation.objects.filter(wanted, is_active=True).values_list("kind", flat=True)
    return set(kinds) == set(TrustedImplementation.Kind)


def _matches(kind: str, code: bytes) -> Q:
    implementation = implementation_of(code)
    if implementation is not None:
        return Q(kind=kind, address=implementation)
    return Q(kind=kind, code_hash=code_hash(code))


def standing_transaction(*, user: ProfileOwner, identity: Identity) -> RelayTransaction | None:
    """Return the user's relay transaction of this identity that is in progress or executed, if any."""
    return (
        RelayTransaction.objects.standing()
        .filter(user_id=user.pk, digest=identity.digest, controller_address=identity.controller)
        .first()
    )


def is_paused() -> bool:
    """Return whether staff have paused the whole relay."""
    newest = RelaySwitch.objects.order_by("-id").first()
    return newest is not None and not newest.is_open


def next_generation(*, identity: Identity) -> int:
    """Return the number of the next try of this identity; 0 for the first."""
    newest = RelayTransaction.objects.filter(
        digest=identity.digest, controller_address=identity.controller
    ).aggregate(newest=Max("generation"))["newest"]
    return 0 if newest is None else newest + 1


@dataclass(frozen=True, slots=True)
class TransactionReport:
    """The status record of a relay transaction. Costs and balances in credits."""

    status: str
    sender_address: str
    credits_used: int
    credits_before: int
    credits_after: int


def transaction_report(*, user: ProfileOwner, transaction_hash: str) -> TransactionReport:
    """
    Report on the user's relay transaction that one of its attempts' hashes names.

    Until it is settled the figures are the expected cost and the balance at
    acceptance; afterwards they are the ledger entry's own.

    Raises:
        TransactionNotFound: no such transaction of this user.
    """
    found = (
        RelayTransaction.objects.select_related("hold__entry")
        .filter(user_id=user.pk, attempts__transaction_hash=transaction_hash.lower())
        .first()
    )
    if found is None:
        raise TransactionNotFound("The signed-in profile has no relay transaction with this hash.")
    used, before, after = credits_of(found)
    return TransactionReport(found.status, found.profile_address, used, before, after)


def transactions_of(user: ProfileOwner) -> QuerySet[RelayTransaction]:
    """Return the user's relay transactions, each with the ledger entry that `credits_of` reads."""
    return RelayTransaction.objects.filter(user_id=user.pk).select_related("hold__entry")


def credits_of(found: RelayTransaction) -> tuple[int, int, int]:
    """Return the credits that a transaction uses, and the balance before and after it."""
    entry = found.hold.entry
    if entry is not None:
        return -entry.amount, entry.balance_before, entry.balance_after
    used = found.expected_cost if found.is_in_progress else 0
    return used, found.credits_before, found.credits_before - used


def trusts_any_code() -> bool:
    """Return whether unvetted profiles are served as well (`CHAIN_TRUST=open`)."""
    return bool(settings.CHAIN_TRUST == "open")
