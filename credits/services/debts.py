"""
The debt of a deleted account passes to the next account of the same profile.

When an account that owes credits, or may come to owe some, is erased, a keyed digest of its profile's address stays
(`Debtor`). The next account of the same profile becomes its successor and takes over the debt by a pair of entries,
after which the old account's balance is zero. Debt from a later dispute or reversed earning follows in the same way.
"""

import hmac
import logging
from datetime import datetime, timedelta
from hashlib import sha256

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.db.models import Q

from credits.models import PROOFS, CreditAccount, Debtor, EntrySource
from credits.services.statements import Sql
from gateway.common import db
from gateway.common.tasks import Sweep
from users.models import User

logger = logging.getLogger(__name__)
# How long to keep the digest of an account that owes nothing: as long as a payment may be disputed.
KEPT = timedelta(days=180)
# How long to keep the digest of an account that owes credits.
KEPT_IN_DEBT = timedelta(days=730)
REASON = "owed by an earlier account of this profile"


def remember(user: User, now: datetime) -> None:
    """Keep the digest of a user who is being erased, if the account owes credits or may come to owe some."""
    account = CreditAccount.objects.filter(user_id=user.pk).first()
    if account is None or not _may_owe(account, now):
        return
    if not settings.DEBT_DIGEST_KEYS:
        raise ImproperlyConfigured("Erasing an account that may owe credits needs DEBT_DIGEST_KEYS.")
    key = settings.DEBT_DIGEST_KEYS[0]
    digest = _digest(key, str(user.profile_address))
    Debtor.objects.get_or_create(account=account, defaults={"key_id": key_id(key), "digest": digest})


def _may_owe(account: CreditAccount, now: datetime) -> bool:
    recent = account.entries.filter(source__in=PROOFS, created_at__gt=now - KEPT)
    return account.balance < 0 or recent.exists()


def return_to(account: CreditAccount, *, profile_address: str) -> None:
    """Let a new account take over the debts of earlier accounts of its profile, in the caller's transaction."""
    digests = [_digest(key, profile_address) for key in settings.DEBT_DIGEST_KEYS]
    earlier = Debtor.objects.filter(digest__in=digests).exclude(account=account)
    earlier.update(successor=account)
    for debtor in earlier.order_by("account_id"):
        _take_over(debtor)


def return_due() -> int:
    """Let successors take over debts that have arisen since; return how many were taken over."""
    sweep, moved = Sweep("debt"), 0
    # Skip a successor that is being deleted; the profile's next account takes over the debt.
    due = Debtor.objects.filter(account__balance__lt=0, successor__user__is_active=True)
    for debtor in due.order_by("account_id"):
        with sweep.item(debtor.pk), transaction.atomic(durable=True):
            moved += _take_over(debtor)
    sweep.finish()
    return moved


def forget_settled(*, now: datetime) -> int:
    """Delete the digests whose time is over; return how many."""
    is_over = Q(account__balance__gte=0, erased_at__lt=now - KEPT) | Q(erased_at__lt=now - KEPT_IN_DEBT)
    return Debtor.objects.filter(is_over).delete()[0]


def key_id(key: str) -> str:
    """Return the public name of a key."""
    return sha256(f"debt digest key: {key}".encode()).hexdigest()[:16]


def _digest(key: str, profile_address: str) -> str:
    return hmac.digest(key.encode(), f"debt:{profile_address}".encode(), "sha256").hex()


def _take_over(debtor: Debtor) -> bool:
    params = {
        "old": debtor.account_id,
        "new": debtor.successor_id,
        "source": EntrySource.DEBT_TRANSFER,
        "reason": REASON,
    }
    is_moved = bool(db.all_rows(Sql.take_over_debt, params))
    if is_moved:
        logger.info("account %s takes over the debt of account %s", debtor.successor_id, debtor.account_id)
    return is_moved
