"""First credits of new profiles: each profile gets them once, also after its account was deleted."""

from typing import ClassVar

import pgtrigger
from django.db import models


class FirstCredits(models.Model):
    """
    The first credits that belong to a sponsored deployment, and the sponsor's hold that pays for them.

    A keyed digest of the profile's address makes sure that the profile gets them once; it stays when the account is
    deleted. Without a digest the profile gets none: it has had them already, or the deployment failed.
    """

    call = models.OneToOneField("sponsors.SponsoredCall", models.PROTECT, related_name="first_credits")
    hold = models.OneToOneField("credits.CreditHold", models.PROTECT, related_name="first_credits")
    # Null and not empty, so that the unique key does not apply to deployments that give nothing.
    digest = models.CharField(max_length=64, null=True, unique=True)  # noqa: DJ001

    class Meta:
        verbose_name_plural = "first credits"
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.ReadOnly(name="of_that_call", fields=["call", "hold"])
        ]

    def __str__(self) -> str:
        return f"first credits of call {self.call_id}"
