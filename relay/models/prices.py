"""The price of a credit on each chain, in the chain's own coin: rows with a date, never changed."""

from datetime import datetime
from typing import Any, ClassVar

import pgtrigger
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from gateway.chain.config import chain_of, chains
from gateway.common.fields import ClockField, Uint256Field
from gateway.common.models import APPEND_ONLY


class CreditPrice(models.Model):
    """
    The wei that one credit pays for on a chain, from `valid_from` on. The newest price of a chain is in force.

    The first price of a chain is that of the settings. Every later one needs approval and is in force at once. A call
    keeps the price with which it was accepted.
    """

    chain_id = models.BigIntegerField("chain")
    credit_wei = Uint256Field(
        "wei of a credit", help_text="The wei of the chain's coin that one credit pays for."
    )
    valid_from = ClockField[datetime, datetime](editable=False)
    is_first = models.BooleanField(default=False, editable=False)

    class Meta:
        permissions = [("decide_creditprice", "Can decide other people's requests about prices of a credit")]
        constraints = [
            models.UniqueConstraint(fields=["chain_id", "valid_from"], name="creditprice_one_per_moment"),
            models.UniqueConstraint(
                fields=["chain_id"], condition=Q(is_first=True), name="creditprice_first"
            ),
            models.CheckConstraint(condition=Q(credit_wei__gt=0), name="creditprice_positive"),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        coin = chain_of(self.chain_id).currency if self.chain_id else "coin"
        return f"1 credit = {self.credit_wei} wei of {coin} on chain {self.chain_id}"

    def clean_fields(self, exclude: Any = None) -> None:
        """Refuse a chain that the settings do not have, and a price of 0."""
        super().clean_fields(exclude=exclude)
        if self.chain_id not in {chain.id for chain in chains()}:
            raise ValidationError({"chain_id": "The service has no such chain."})
        if not self.credit_wei:
            raise ValidationError({"credit_wei": "A credit must pay for at least 1 wei."})
