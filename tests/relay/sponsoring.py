"""Calls that name a sponsor."""

from typing import Any

from django.utils import timezone

from credits.models import CreditAccount, CreditHold
from gateway.chain.lsp25 import RelayCall
from relay.models import RelayTransaction
from relay.services.accepting import submission
from relay.services.accepting.calls import Caller
from sponsors.models import Sponsor, SponsoredCall, Usage
from sponsors.services.paying import SponsorChoice
from tests.database import rows_of
from tests.relay.rows import everything
from users.models import User


def execute_sponsored(
    user: User, call: RelayCall, sponsor: Sponsor | str, *, user_may_pay: bool = False, **options: Any
) -> str:
    """Hand in a call that the sponsor is to pay; return the hash."""
    slug = sponsor if isinstance(sponsor, str) else sponsor.slug
    return submission.execute(
        caller=Caller(user.pk, str(user.profile_address)),
        call=call,
        now=timezone.now(),
        sponsor=SponsorChoice(slug, user_may_pay=user_may_pay),
        **options,
    )


def all_rows() -> dict[str, list[Any]]:
    """Return every row that a sponsored call may touch."""
    return everything() | rows_of(SponsoredCall, Usage)


def account_of(sponsor: Sponsor) -> CreditAccount:
    return CreditAccount.objects.get(sponsor=sponsor)


def used(sponsor: Sponsor) -> dict[str, tuple[int, int]]:
    """Return what the sponsor's policies count, in credits and calls, by scope."""
    rows = Usage.objects.filter(policy__sponsor=sponsor).values_list("scope", "credits", "calls")
    return {scope: (spent, calls) for scope, spent, calls in rows}


def hold_of(row: RelayTransaction) -> CreditHold:
    """Return the sponsor's hold of a call."""
    return SponsoredCall.objects.select_related("sponsor_hold").get(hold_id=row.hold_id).sponsor_hold


def row_of(transaction_hash: str) -> RelayTransaction:
    """Return the call of a hash."""
    return RelayTransaction.objects.get(attempts__transaction_hash=transaction_hash)
