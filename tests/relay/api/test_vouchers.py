"""A voucher comes in the header Relay-Sponsor-Voucher."""

import base64
import json
from collections.abc import Callable

import pytest

from devstack.services.stack import Services
from gateway.chain.lsp25 import RelayCall
from sponsors.models import UsedVoucher
from sponsors.rules.vouchers import SignedVoucher
from tests.relay.api.conftest import Wallet, execute_body
from tests.relay.services.test_vouchers import Issuer
from users.models import User

pytestmark = pytest.mark.django_db
EXECUTE = "/api/relay/execute"


def voucher_text(signed: SignedVoucher) -> str:
    voucher = signed.voucher
    fields = {
        "sponsor": voucher.sponsor,
        "policy": voucher.policy,
        "profile": voucher.profile,
        "id": "0x" + voucher.voucher_id.hex(),
        "deadline": voucher.deadline,
        "maximumCredits": voucher.maximum_credits,
        "signature": "0x" + signed.signature.hex(),
    }
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


def test_a_call_with_a_voucher_is_paid_and_its_status_names_the_sponsor(
    services: Services, wallet: Wallet, user: User, new_call: Callable[..., RelayCall]
) -> None:
    issuer, call = Issuer(services), new_call()
    text = voucher_text(issuer.voucher(str(user.profile_address)))
    headers = {"Relay-Sponsor": issuer.sponsor.slug, "Relay-Sponsor-Voucher": text}

    without = wallet.post(EXECUTE, execute_body(call), **{"Relay-Sponsor": issuer.sponsor.slug})
    broken = wallet.post(EXECUTE, execute_body(call), **{**headers, "Relay-Sponsor-Voucher": text[:-5]})
    paid = wallet.post(EXECUTE, execute_body(call), **headers)

    assert (without.status, without.body["code"]) == (403, "sponsor-voucher-missing")
    assert (broken.status, broken.body["code"], broken.body["reason"]) == (403, "sponsor-voucher", "form")
    assert paid.status == 200, paid.body
    assert UsedVoucher.objects.count() == 1
