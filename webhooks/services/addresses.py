"""
The e-mail address of an account holder: stored, confirmed from the mailbox, and removed.

Links in e-mails have signed tokens, so nothing is stored for them. A token is for one address but does not reveal it,
because logs contain the paths of requests.
"""

from datetime import datetime, timedelta

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac

from users.models import User
from webhooks.errors import EmailUnavailable
from webhooks.models import Notice, NoticeAddress

_CONFIRM, _STOP = "webhooks.confirm-address", "webhooks.stop-notices"
CONFIRM_WITHIN = timedelta(days=3)


@transaction.atomic
def give(*, user: User, email: str, language: str, now: datetime) -> None:
    """
    Store the address and e-mail its owner to confirm it; an address that is already confirmed does not change.

    Raises:
        EmailUnavailable: the operator has no mail server.
    """
    if not settings.EMAIL_HOST:
        raise EmailUnavailable("This service sends no e-mail.")
    if NoticeAddress.objects.filter(user=user, email=email, confirmed_at__isnull=False).exists():
        return
    NoticeAddress.objects.update_or_create(
        user=user, defaults={"email": email, "language": language, "confirmed_at": None}
    )
    key = f"confirm:{user.pk}:{now.timestamp()}"
    Notice.objects.create(user=user, kind=Notice.Kind.CONFIRM, key=key, data={"email": email})


def remove(*, user: User) -> None:
    """Delete the address, and all notices of the user, sent or not."""
    NoticeAddress.objects.filter(user=user).delete()
    Notice.objects.filter(user=user).delete()


def confirm_token(address: NoticeAddress) -> str:
    return signing.dumps([address.user_id, _digest(address)], salt=_CONFIRM)


def stop_token(address: NoticeAddress) -> str:
    return signing.dumps([address.user_id, _digest(address)], salt=_STOP)


def _digest(address: NoticeAddress) -> str:
    return salted_hmac("webhooks.notice-address", address.email, algorithm="sha256").hexdigest()[:32]


def confirm(token: str, *, now: datetime) -> bool:
    """Confirm the token's address; return False if the token is not valid or was issued for an earlier address."""
    address = _address_of(token, salt=_CONFIRM, max_age=CONFIRM_WITHIN)
    if address is not None and address.confirmed_at is None:
        NoticeAddress.objects.filter(pk=address.pk, email=address.email).update(confirmed_at=now)
    return address is not None


def stop(token: str) -> None:
    """Delete the token's address; a missing address is not an error."""
    address = _address_of(token, salt=_STOP, max_age=None)
    if address is not None:
        remove(user=address.user)


def _address_of(token: str, *, salt: str, max_age: timedelta | None) -> NoticeAddress | None:
    try:
        user_id, digest = signing.loads(token, salt=salt, max_age=max_age)
    except signing.BadSignature:
        return None
    address = NoticeAddress.objects.select_related("user").filter(user_id=user_id).first()
    return address if address and constant_time_compare(_digest(address), digest) else None
