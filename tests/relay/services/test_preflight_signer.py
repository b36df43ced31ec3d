"""Who signed: unknown keys, known mistakes, and the forms of one signature."""

import random
import secrets
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.utils import timezone
from eth_account import Account

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.errors import UnrecoverableSignature, UnusableSignature
from gateway.chain.lsp25 import RelayCall, wrong_hashes
from relay.errors import SignerNotController
from relay.models import RelayTransaction
from relay.services.accepting import submission
from relay.services.accepting.limits import RefusedCalls
from tests.factories import random_address
from tests.relay.callers import execute
from tests.relay.conftest import Refused
from tests.relay.signing import execute_payload, sign_call, sign_digest, window
from users.models import User

pytestmark = pytest.mark.django_db
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def call_with_every_part(services: Services, profile: Profile, channel: int = 7) -> RelayCall:
    """Return a call that has a channel, a predecessor, a window and a value, so that each can be signed wrongly."""
    payload = execute_payload(random_address(), value=random.randint(1, 10**9))
    fields = {"payload": payload, "relay_nonce": channel << 128 | 1, "validity": window(1, 2**40)}
    return sign_call(services=services, profile=profile, **fields)  # type: ignore[arg-type]


def test_the_error_of_an_unknown_signer_names_the_recovered_address(
    services: Services, user: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    unknown = Account.create()
    call = new_call(private_key="0x" + bytes(unknown.key).hex())
    refusal = refused.call(SignerNotController, user, call)
    digest = call.digest(services.chain_id)
    assert refusal.members == {"recovered": unknown.address, "hash": "0x" + digest.hex()}


def test_a_controllers_known_mistake_has_its_own_code(
    services: Services,
    profile: Profile,
    user: User,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(submission, "refused_calls", RefusedCalls(most=100))
    call = call_with_every_part(services, profile, channel=secrets.randbits(100))
    mistakes = wrong_hashes(chain_id=services.chain_id, call=call, profile=profile.profile_address)
    assert len({wrong.mistake for wrong in mistakes}) > 10
    for wrong in mistakes:
        signature = sign_digest(profile.controller.private_key, wrong.digest)
        with refused(wrong.mistake) as refusal:
            execute(user=user, call=replace(call, signature=signature), now=timezone.now())
        assert refusal.value.status == 400
        assert refusal.value.members == {"controller": profile.controller.address}
        assert "{" not in refusal.value.detail


def test_a_wrong_hash_signed_by_another_key_is_an_unknown_signer(
    services: Services, profile: Profile, user: User, refused: Refused
) -> None:
    call = call_with_every_part(services, profile)
    wrong = wrong_hashes(chain_id=services.chain_id, call=call, profile=profile.profile_address)[0]
    call = replace(call, signature=sign_digest("0x" + secrets.token_hex(32), wrong.digest))
    refused.call(SignerNotController, user, call)


def high_s(signature: bytes) -> bytes:
    s = ORDER - int.from_bytes(signature[32:64], "big")
    return signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])


def compact(signature: bytes) -> bytes:
    parity = signature[64] - 27
    return signature[:32] + bytes([signature[32] | parity << 7]) + signature[33:64]


SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "v of 0 or 1": lambda signature: signature[:64] + bytes([signature[64] - 27]),
    "64 bytes of ERC-2098": compact,
    "s in the upper half": high_s,
    "s in the upper half and v of 0 or 1": lambda signature: (
        high_s(signature)[:64] + bytes([high_s(signature)[64] - 27])
    ),
}


def test_every_spelling_of_a_signature_is_executed_and_all_are_one_call(
    user: User, new_call: Callable[..., RelayCall], settle: Callable[[], int]
) -> None:
    spellings = list(SPELLINGS.values())
    calls = [new_call(channel=channel) for channel in range(len(spellings))]
    for place, call in enumerate(calls):
        # Another spelling comes first each time.
        hashes = {
            execute(user=user, call=replace(call, signature=spell(call.signature)), now=timezone.now())
            for spell in (*spellings[place:], *spellings[:place])
        }
        assert len(hashes) == 1

    assert settle() == len(calls)
    rows = RelayTransaction.objects.order_by("pk")
    assert [(row.status, bytes(row.signature)) for row in rows] == [
        ("Success", call.signature) for call in calls
    ]


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda signature: signature[:64] + bytes([random.choice([2, 26, 29, 255])]),
        lambda signature: bytes(32) + signature[32:],
        lambda signature: ORDER.to_bytes(32, "big") + signature[32:],
        lambda signature: signature[:32] + bytes(32) + signature[64:],
    ],
    ids=["v", "r of zero", "r of the order", "s of zero"],
)
def test_a_malformed_signature_is_refused(
    user: User, new_call: Callable[..., RelayCall], refused: Refused, corrupt: Callable[[bytes], bytes]
) -> None:
    call = new_call()
    refused.call(UnusableSignature, user, replace(call, signature=corrupt(call.signature)))


def test_a_signature_of_no_key_is_refused(
    user: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    call = new_call()
    # 5 is the x of no point of the curve.
    signature = (5).to_bytes(32, "big") + call.signature[32:]
    refused.call(UnrecoverableSignature, user, replace(call, signature=signature))
