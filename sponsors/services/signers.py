"""The addresses that sign sponsors' vouchers."""

from django.db.models import Model

from gateway.common import clock
from gateway.staff.form_kinds import Values
from sponsors.models import VoucherSigner


def save(signer: VoucherSigner, values: Values) -> Model:
    """
    Store a new signer, whose vouchers are accepted from now on.

    Raises:
        ValidationError: the sponsor has this signer already.
    """
    signer.full_clean()
    signer.save(force_insert=True)
    return signer


def remove(signer: VoucherSigner) -> str:
    """Refuse the signer's vouchers from the next call on; return the outcome as a sentence."""
    VoucherSigner.objects.filter(pk=signer.pk, removed_at=None).update(removed_at=clock.now())
    return f"Vouchers of {signer.address} are refused now."
