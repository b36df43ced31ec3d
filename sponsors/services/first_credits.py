"""
First credits: what a policy gives a new profile besides its deployment.

They are held on the sponsor's account when the deployment is accepted, and move to the profile's account when it is
settled, in that transaction. Each profile gets them once, also after its account was deleted: a keyed digest of its
address stays.
"""

import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import BigIntegerField, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce

from credits.models import CreditEntry, EntrySource, ExpiringLot, HoldStatus, HomeCredits
from credits.services.entries import Posting, post_all
from credits.services.holds import ClosedHold, ReopenedHold
from sponsors.models import FirstCredits


class Due(NamedTuple):
    """First credits that are due: the profile's user, how many, when they expire, and chains to spend them on."""

    user_id: int
    credits: int
    days: int
    chain_ids: Sequence[int]


def promise(*, profile: str, hold_id: int) -> None:
    """
    Note that the profile of a deployment, given by its user's hold, gets first credits if its policy gives any.

    A profile that has had them, also under an earlier account, gets no others. Runs in the transaction that accepts the
    deployment: a profile has one deployment in progress, so no other transaction decides about the same one.
    """
    new = FirstCredits.objects.filter(call__hold=hold_id, digest=None).first()
    if new is None:
        return
    digests = _digests(profile)
    # An earlier deployment that failed has given nothing.
    FirstCredits.objects.filter(digest__in=digests, hold__status=HoldStatus.RELEASED).update(digest=None)
    if not FirstCredits.objects.filter(digest__in=digests).exists():
        FirstCredits.objects.filter(pk=new.pk).update(digest=digests[0])


def give(*, closed: Sequence[ClosedHold], due: Mapping[int, Due], now: datetime) -> None:
    """Post the first credits of these closed holds, which `due` names by their ids, and announce when they expire."""
    given = {f"first:{hold.entry_key}": due[hold.hold_id] for hold in closed if hold.hold_id in due}
    if not given:
        return
    ids = post_all(
        [
            Posting(one.user_id, one.credits, EntrySource.FIRST_CREDITS, key)
            for key, one in sorted(given.items(), key=lambda item: item[1].user_id)
        ]
    )
    ends = {key: now + timedelta(days=one.days) for key, one in given.items()}
    ExpiringLot.objects.bulk_create(
        ExpiringLot(entry_id=ids[key], credits=one.credits, expires_at=ends[key], announced_at=now)
        for key, one in given.items()
    )
    # After a reorganisation there are charges already, which the credits before these have paid.
    charges = CreditEntry.objects.filter(account=OuterRef("account"), hold__paid_only=False).order_by()
    spent = charges.values("account").annotate(spent=-Sum("amount")).values("spent")
    posted = CreditEntry.objects.filter(pk__in=ids.values()).values_list(
        "key", "account", Coalesce(Subquery(spent), 0, output_field=BigIntegerField())
    )
    HomeCredits.objects.bulk_create(
        HomeCredits(
            account_id=account_id,
            credits=given[key].credits,
            spent=spent,
            chain_ids=given[key].chain_ids,
            expires_at=ends[key],
        )
        for key, account_id, spent in posted
    )


def take_back(*, reopened: Sequence[ReopenedHold]) -> None:
    """Take back the first credits of these reopened holds; the profile's balance may become negative."""
    keys = [f"first:{hold.entry_key}" for hold in reopened if hold.user_id is None and hold.entry_key]
    given = CreditEntry.objects.filter(key__in=keys).order_by("account__user_id", "pk")
    postings = [
        Posting(user_id, -amount, EntrySource.RELAY_REVERSAL, f"reversal:{key}")
        for user_id, amount, key in given.values_list("account__user_id", "amount", "key")
        if user_id is not None
    ]
    if postings:
        HomeCredits.objects.filter(account__entries__in=given).delete()
        post_all(postings)


def _digests(profile: str) -> list[str]:
    """Return the digests of the profile's address under each key, the newest first."""
    return [
        hmac.digest(key.encode(), f"first credits:{profile}".encode(), "sha256").hex()
        for key in settings.DEBT_DIGEST_KEYS
    ]
