"""The code of profiles and key managers that the service trusts."""

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

from gateway.common.fields import AddressField, HashField


class TrustedImplementation(models.Model):
    """
    Trusted code of a profile or a key manager.

    Minimal proxies (EIP-1167) are identified by the `address` they delegate to,
    other contracts by the `code_hash` of their runtime code.
    """

    class Kind(models.TextChoices):
        PROFILE = "profile"
        KEY_MANAGER = "key-manager"

    kind = models.CharField(max_length=12, choices=Kind)
    name = models.CharField(max_length=80, help_text="Name of the release, shown to staff.")
    address = AddressField(null=True, blank=True)
    code_hash = HashField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        permissions = [
            ("decide_trustedimplementation", "Can decide other people's requests about trusted code")
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(address__isnull=False, code_hash__isnull=True)
                | Q(address__isnull=True, code_hash__isnull=False),
                name="trustedimplementation_address_or_hash",
            ),
            models.UniqueConstraint(fields=["kind", "address"], name="trustedimplementation_kind_address"),
            models.UniqueConstraint(
                fields=["kind", "code_hash"], name="trustedimplementation_kind_code_hash"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Let the form report violations of the database constraint."""
        if bool(self.address) == bool(self.code_hash):
            raise ValidationError(
                "Enter either the address that proxies delegate to, or the hash of the deployed code."
            )


class FoundCode(models.Model):
    """
    The code that a quorum of a chain's nodes has at the address of a trusted implementation.

    Another chain trusts the address only if its code is that of home.
    """

    chain_id = models.BigIntegerField()
    address = AddressField()
    code_hash = HashField()
    found_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["chain_id", "address"], name="foundcode_one_per_address")
        ]

    def __str__(self) -> str:
        return f"{self.address} on chain {self.chain_id}"
