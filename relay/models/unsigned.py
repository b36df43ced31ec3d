"""Relay calls that wait for a signature from elsewhere: they have a hold and an account nonce, and no hash yet."""

from django.db import models

from gateway.common.fields import AddressField, Uint256Field
from relay.models.calls import current_chain_id


class UnsignedCall(models.Model):
    """
    A relay call between the two transactions of accepting it; the second replaces this row by the call's own.

    Its hash was answered to nobody. It is signed with what `call` says and nothing else, so that whoever asks for
    the signature again gets the same one; or it is given up, and its account nonce used up otherwise.
    """

    chain_id = models.BigIntegerField(default=current_chain_id)
    # `unsignedcall_account_nonce` begins with the relayer.
    relayer = models.ForeignKey(
        "relay.Relayer", models.PROTECT, related_name="unsigned_calls", db_index=False
    )
    account_nonce = models.BigIntegerField()
    hold = models.OneToOneField("credits.CreditHold", models.PROTECT, related_name="unsigned_call")
    key_manager_address = AddressField()
    controller_address = AddressField()
    relay_nonce = Uint256Field()
    worst_cost_wei = Uint256Field()
    call = models.JSONField(help_text="What `relay_store_calls` takes, without the signed bytes.")
    taken_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["relayer", "account_nonce"], name="unsignedcall_account_nonce"),
            models.UniqueConstraint(
                fields=["chain_id", "key_manager_address", "controller_address", "relay_nonce"],
                name="unsignedcall_relay_nonce",
            ),
        ]

    def __str__(self) -> str:
        return f"account nonce {self.account_nonce} of {self.relayer_id}"
