"""Relayers: the sending accounts that pay gas."""

from typing import Self

from django.db import models
from django.db.models import ExpressionWrapper, F, OuterRef, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from gateway.common.fields import AddressField, Uint256Field
from relay.models.attempts import Attempt


class RelayerQuerySet(models.QuerySet["Relayer"]):
    """Relayers by what they can take."""

    def with_room(self, cap: int) -> Self:
        """Keep the active ones that have fewer than `cap` account nonces that are not mined yet."""
        return self.filter(is_active=True, next_account_nonce__lt=F("mined_account_nonce") + cap)

    def able_to_pay(self, wei: int) -> Self:
        """Keep those whose balance covers `wei` on top of the worst cost of what they have in flight."""
        wei_field: Uint256Field[int, int] = Uint256Field()
        spending = (
            Attempt.objects.filter(relayer=OuterRef("pk"), account_nonce__gte=OuterRef("mined_account_nonce"))
            .exclude(status__in=[Attempt.Status.WITHDRAWN, Attempt.Status.MINED])
            .values("relayer")
            .annotate(wei=Sum(F("gas_limit") * F("max_fee_per_gas_wei"), output_field=wei_field))
        )
        committed = Coalesce(Subquery(spending.values("wei")), Value(0), output_field=wei_field)
        return self.filter(balance_wei__gte=ExpressionWrapper(committed + wei, output_field=wei_field))

    def least_loaded_first(self) -> Self:
        """Order by account nonces in flight."""
        return self.order_by(F("next_account_nonce") - F("mined_account_nonce"), "pk")


class Relayer(models.Model):
    """
    One sending account and the next account nonce it will use.

    Account nonces are taken under this row's lock and are never given back: each
    one ends on chain, with the call it was taken for or with a self-transfer.
    """

    address = AddressField(unique=True)
    next_account_nonce = models.BigIntegerField()
    # The account's transaction count at the newest block the tracker saw.
    mined_account_nonce = models.BigIntegerField()
    balance_wei = Uint256Field(default=0)
    is_active = models.BooleanField(default=True, help_text="An inactive relayer takes no new calls.")
    synced_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RelayerQuerySet.as_manager()

    class Meta:
        permissions = [("pause_relayer", "Can pause and resume a relayer")]

    def __str__(self) -> str:
        return self.address

    @property
    def in_flight(self) -> int:
        """Account nonces that are taken and not mined yet."""
        return max(0, self.next_account_nonce - self.mined_account_nonce)
