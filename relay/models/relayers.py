"""Relayers: the sending accounts that pay gas."""

from typing import Self

from django.db import models
from django.db.models import F

from gateway.common.fields import AddressField, Uint256Field


class RelayerQuerySet(models.QuerySet["Relayer"]):
    """What a relayer can be asked for."""

    def with_room(self, cap: int) -> Self:
        """Keep the active ones that have fewer than `cap` account nonces that are not mined yet."""
        return self.filter(is_active=True, next_account_nonce__lt=F("mined_account_nonce") + cap)

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

    def __str__(self) -> str:
        return self.address

    @property
    def in_flight(self) -> int:
        """Account nonces that are taken and not mined yet."""
        return max(0, self.next_account_nonce - self.mined_account_nonce)
