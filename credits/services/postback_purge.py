"""The inbox forgets old rows that no credit depends on; what is refused at the door was never in it."""

from datetime import datetime, timedelta

from django.conf import settings

from credits.models import Postback
from credits.models.postbacks import WORTHLESS

# Short transactions: postbacks come in meanwhile.
_BATCH = 2_000


def purge(*, now: datetime) -> int:
    """
    Delete old rows that no credit was given for, and return how many they were.

    A repeat of such a row is stored anew and credits nobody, as before: the row of its
    credit, if there is one, stays and decides.
    """
    old = Postback.objects.filter(
        WORTHLESS, entry=None, received_at__lt=now - timedelta(days=settings.POSTBACK_KEPT_DAYS)
    ).order_by("received_at")
    deleted = 0
    while found := list(old.values_list("pk", flat=True)[:_BATCH]):
        deleted += Postback.objects.filter(pk__in=found).delete()[0]
    return deleted
