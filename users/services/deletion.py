"""
The deletion of an account by its owner: requested once, then continued until all personal data is erased.

1. `request` closes the account and ends its sessions.
2. `end_billing`, run by beat, lets every app delete external data: the subscription and the customer at Stripe.
3. `erase_due`, run by the owner of the tables, erases the data once nothing is in progress.

Each step can be repeated, and a repeat continues where the previous run ended. Each app registers its part as an
`AppDeletion`. Rows that accounting needs stay, with an anonymous user.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.db.models import QuerySet

from gateway.common.errors import DomainError
from gateway.common.tasks import Sweep, enqueue_on_commit
from users.errors import FreshSignInRequired
from users.models import AccountDeletion, Ban, Note, ProfileCard, SignInChallenge, SignInSession, User
from users.services import sessions

MAX_SIGN_IN_AGE = timedelta(minutes=10)
# Requests that were in progress when the account was closed have ended by then.
QUIET_TIME = timedelta(minutes=2)
_Status = AccountDeletion.Status
_MAX_REASON = 200
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AppDeletion:
    """
    One app's part in a deletion.

    `end` calls external services such as Stripe, outside any transaction, and is retried on errors. `waits_for` returns
    the work still in progress in words, or an empty text, and `erase` deletes the data. Both run in the same
    transaction, as the owner of the tables.
    """

    waits_for: Callable[[User, datetime], str] = lambda user, now: ""
    erase: Callable[[User], object] = lambda user: None
    end: Callable[[User, datetime], object] = lambda user, now: None


_apps: dict[str, AppDeletion] = {}


def register(app: str, part: AppDeletion) -> None:
    """Register an app's part in every deletion."""
    _apps[app] = part


def request(*, user: User, session: SignInSession | None, now: datetime) -> AccountDeletion:
    """
    Close the user's account permanently, end all its sessions, and schedule its erasure.

    Raises:
        FreshSignInRequired: the session began too long ago to prove that its owner makes the request.
    """
    if session is None or now - session.created_at > MAX_SIGN_IN_AGE:
        seconds = int(MAX_SIGN_IN_AGE.total_seconds())
        raise FreshSignInRequired("Sign in again to delete the account.", maxAgeSeconds=seconds)
    with transaction.atomic(durable=True):
        deletion, _ = AccountDeletion.objects.get_or_create(user=user, defaults={"requested_at": now})
        User.objects.filter(pk=user.pk).update(is_active=False)
        sessions.end_all(user_id=user.pk, reason=SignInSession.Reason.DELETED, now=now)
        enqueue_on_commit("users.end_billing_of_deleted")
    return deletion


def end_billing(*, now: datetime) -> int:
    """
    Let the apps delete external data of all pending deletions; return for how many nothing is left.

    Finished ones are checked again until they are erased, because a request that was in progress when the account was
    closed may have created another customer.
    """
    sweep, ended = Sweep("deletion"), 0
    for deletion in _unfinished():
        with sweep.item(deletion.pk):
            ended += _end_billing(deletion, now)
    sweep.finish()
    return ended


def _end_billing(deletion: AccountDeletion, now: datetime) -> bool:
    row = AccountDeletion.objects.filter(pk=deletion.pk)
    try:
        for part in _apps.values():
            part.end(deletion.user, now)
    except DomainError as error:
        # The other deletions continue, and the next run retries this one.
        logger.warning("deletion %s will be retried by the next run: %s", deletion.pk, error.code)
        row.update(waits_for=error.detail[:_MAX_REASON])
        return False
    row.filter(status=_Status.REQUESTED).update(
        status=_Status.BILLING_ENDED, billing_ended_at=now, waits_for=""
    )
    return True


def erase_due(*, now: datetime) -> int:
    """Erase all deletions that have nothing in progress; return how many. Only the owner of the tables can do this."""
    sweep, erased = Sweep("deletion"), 0
    due = _unfinished().filter(status=_Status.BILLING_ENDED, requested_at__lte=now - QUIET_TIME)
    for deletion in due:
        with sweep.item(deletion.pk):
            erased += _erase(deletion, now)
    sweep.finish()
    return erased


def _unfinished() -> QuerySet[AccountDeletion]:
    rows = AccountDeletion.objects.exclude(status=_Status.ERASED).select_related("user")
    return rows.order_by("requested_at")


@transaction.atomic(durable=True)
def _erase(deletion: AccountDeletion, now: datetime) -> bool:
    user = deletion.user
    row = AccountDeletion.objects.select_for_update().get(pk=deletion.pk)
    if row.status != _Status.BILLING_ENDED:
        return False
    row.waits_for = "; ".join(filter(None, (part.waits_for(user, now) for part in _apps.values())))[
        :_MAX_REASON
    ]
    if not row.waits_for:
        for part in _apps.values():
            part.erase(user)
        _forget(user)
        row.status, row.erased_at = _Status.ERASED, now
    row.save()
    return row.status == _Status.ERASED


def _forget(user: User) -> None:
    """Remove personal data from the user's row, which stays. The profile can then sign in as a new user."""
    SignInSession.objects.filter(user=user).delete()
    Note.objects.filter(person=user).delete()
    Ban.objects.filter(user=user).delete()
    ProfileCard.objects.filter(user=user).delete()
    SignInChallenge.objects.filter(profile_address=str(user.profile_address)).delete()
    User.objects.filter(pk=user.pk).update(
        username=f"deleted-{user.pk}",
        profile_address=None,
        password=make_password(None),
        email="",
        first_name="",
        last_name="",
        last_login=None,
    )
