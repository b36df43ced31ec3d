"""What others ask about payments. Nothing here writes."""

from decimal import Decimal

from gateway.common.owner import ProfileOwner
from payments.amounts import MINOR_UNITS
from payments.models import Subscription


def monthly_amount_of(user: ProfileOwner) -> Decimal:
    """Return what the user's living subscription costs a month, in major units; 0 without one."""
    living = Subscription.objects.living().filter(user_id=user.pk)
    amount_minor = living.values_list("amount_minor", flat=True).first()
    return Decimal(amount_minor or 0) / MINOR_UNITS
