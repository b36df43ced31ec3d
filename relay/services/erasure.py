"""Erases personal data from relay calls when an account is deleted; costs and the hashes that prove them stay."""

import secrets

from django.db.models import CharField, OuterRef, Subquery, Value
from django.db.models.functions import Cast, Coalesce, Concat

from credits.models import CreditHold
from gateway.chain.config import chains
from gateway.common.fields import checksum
from relay.models import Attempt, FinalBlock, Loss, ProfileCreation, RelayTransaction
from users.models import User

_ADDRESS_BYTES = 20
_ADDRESSES = ("profile_address", "key_manager_address", "controller_address")
# Replaces the key of a call's hold, which contains the controller's address.
_ERASED_KEY = Concat(Value("relay:erased:"), Cast("pk", CharField()))


def reason_to_wait(user: User) -> str:
    """
    Return why the user's calls may still change; empty if all are final.

    Nobody reads blocks of a chain that is no longer in the settings, so calls that ended there do not change.
    """
    if RelayTransaction.objects.in_progress().filter(user=user).exists():
        return "a relay call is in progress"
    final = FinalBlock.objects.filter(chain_id=OuterRef("chain_id")).values("number")
    young = Attempt.objects.filter(
        relay_transaction__user=user,
        chain_id__in=[chain.id for chain in chains()],
        block_number__gt=Coalesce(Subquery(final), -1),
    )
    return "the block of a relay call is not final" if young.exists() else ""


def erase(user: User) -> None:
    """
    Delete payloads and signatures of the user's calls, and replace each address with a random one; keep the rest.

    Equal addresses get equal replacements, so calls of one profile stay grouped. The transaction hash still leads to
    the call on the public chain. The keys of holds and losses are replaced too, so that a new account of the same
    profile can repeat a call that had failed.
    """
    calls = RelayTransaction.objects.filter(user=user)
    for column in _ADDRESSES:
        for address in set(calls.values_list(column, flat=True)):
            calls.filter(**{column: address}).update(**{column: _random_address()})
    for row in ProfileCreation.objects.filter(user=user):
        # With another key, the same request opens a new account for the profile.
        row.request_key, row.body_hash = (_random_hash() for _ in range(2))
        row.profile_address, row.key_manager_address = (_random_address() for _ in range(2))
        row.controllers, row.origin = [], ""
        row.save(
            update_fields=[
                "request_key",
                "body_hash",
                "profile_address",
                "key_manager_address",
                "controllers",
                "origin",
            ]
        )
    calls.update(payload=b"", signature=b"", failure_detail="", request_id="")
    Attempt.objects.filter(relay_transaction__user=user).update(raw=b"", node_message="")
    holds = CreditHold.objects.filter(relay_transaction__user=user)
    same_key = CreditHold.objects.filter(key=OuterRef("key"))
    Loss.objects.filter(key__in=holds.values("key")).update(key=Subquery(same_key.values(erased=_ERASED_KEY)))
    of_sponsors = CreditHold.objects.filter(sponsors__hold__in=holds)
    of_sponsors.update(key=Concat(Value("sponsored:"), _ERASED_KEY))
    gifts = CreditHold.objects.filter(first_credits__call__hold__in=holds)
    gifts.update(key=Concat(Value("first:"), _ERASED_KEY))
    holds.update(key=_ERASED_KEY)


def _random_hash() -> str:
    return "0x" + secrets.token_hex(32)


def _random_address() -> str:
    return checksum("0x" + secrets.token_hex(_ADDRESS_BYTES))
