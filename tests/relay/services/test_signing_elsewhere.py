"""Calls that are signed by another process: accepted in two transactions, with the signature in between."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditHold
from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from gateway.chain.client import get_chain_client
from gateway.chain.errors import SignerUnavailable
from gateway.chain.lsp25 import RelayCall
from gateway.chain.remote_signing import RemoteSigner, remote_signer
from gateway.chain.signing import get_signer, set_signer
from gateway.chain.treasury import get_treasury
from gateway.common import db
from relay.errors import RelayNonceTaken
from relay.models import Attempt, GapFiller, Relayer, RelayTransaction, UnsignedCall
from relay.services.accepting import unsigned
from relay.services.fleet import relayers as relay_relayers
from relay.services.sending import cancellation, funding, replacement
from relay.services.sending.gaps import GapWatch
from signer.client import SignerAway, SignerClient
from signer.keys import Keyring, MemoryKey
from signer.messages import Outcome, SigningRequest
from signer.transactions import PolicyViolation
from tests.relay.callers import execute, execute_elsewhere
from tests.relay.chain import Chain
from tests.relay.conftest import Accept
from tests.relay.remote_signers import RemoteSigners
from tests.relay.signing import set_data_payload, window
from tests.relay.workers import broadcast_all, bumped_fees, later
from tests.signer.parts import wait_until
from tests.threads import at_once
from users.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("signers")]
NewCall = Callable[..., RelayCall]


@contextmanager
def responses_lost() -> Iterator[None]:
    """Let the signer sign, and its responses be lost."""
    sign = SignerClient.sign

    def lost(client: SignerClient, requests: object) -> object:
        sign(client, requests)  # type: ignore[arg-type]
        raise SignerAway("as a test wants it")

    with patch.object(SignerClient, "sign", lost):
        yield


@contextmanager
def away() -> Iterator[None]:
    """Make the signer unreachable."""
    with patch.object(SignerClient, "sign", side_effect=SignerAway("as a test wants it")):
        yield


def _assert_no_gap() -> None:
    for relayer in Relayer.objects.all():
        taken = {*relayer.attempts.values_list("account_nonce", flat=True)}
        taken |= {*relayer.gap_fillers.values_list("account_nonce", flat=True)}
        taken |= {*relayer.unsigned_calls.values_list("account_nonce", flat=True)}
        assert set(range(relayer.mined_account_nonce, relayer.next_account_nonce)) <= taken
    assert find_differences() == []


def test_an_accepted_call_has_the_signers_bytes_and_is_settled(
    accept: Accept, signers: RemoteSigners, settle: Callable[[], int]
) -> None:
    row = accept()
    assert not UnsignedCall.objects.exists()
    assert signers.service.counts == {"signed": 1}
    assert settle() == 1
    row.refresh_from_db()
    assert row.status == "Success"
    _assert_no_gap()
    addresses = get_signer().addresses()
    assert signers.targets.used_nonces(addresses).keys() == set(addresses)


def test_a_call_with_a_lost_signature_keeps_its_hash_for_the_next_request(
    user: User, new_call: NewCall, signers: RemoteSigners, settle: Callable[[], int]
) -> None:
    call = new_call()
    with responses_lost(), pytest.raises(SignerUnavailable):
        execute(user=user, call=call, now=timezone.now())
    assert (UnsignedCall.objects.count(), CreditHold.objects.count()) == (1, 1)
    transaction_hash = execute(user=user, call=call, now=timezone.now())
    assert RelayTransaction.objects.get().transaction_hash == transaction_hash
    assert execute(user=user, call=call, now=timezone.now()) == transaction_hash
    assert signers.service.signed_ever() == 1
    assert settle() == 1
    _assert_no_gap()


def test_the_worker_signs_unsigned_calls_of_a_crashed_process(
    user: User, new_call: NewCall, settle: Callable[[], int]
) -> None:
    with away(), pytest.raises(SignerUnavailable):
        execute(user=user, call=new_call(), now=timezone.now())
    assert unsigned.sweep(now=timezone.now()) == 0
    with away():
        assert unsigned.sweep(now=later(10)) == 0
    assert unsigned.waiting().calls == 1
    assert unsigned.sweep(now=later(10)) == 1
    assert unsigned.waiting().calls == 0
    assert settle() == 1
    _assert_no_gap()


def test_a_call_not_signed_in_time_is_cancelled_and_its_account_nonce_is_filled(
    user: User, new_call: NewCall, chain: Chain, settings: Settings, settle: Callable[[], int]
) -> None:
    call, before = new_call(), balance_of(user)
    with responses_lost(), pytest.raises(SignerUnavailable):
        execute(user=user, call=call, now=timezone.now())
    (waiting,) = UnsignedCall.objects.all()
    watch = GapWatch()
    head = get_chain_client().head()
    for seconds in (0, 20):
        assert watch.fill(head=head, now=later(seconds)) == 0  # It waits, so it is not a gap.
    with away():
        unsigned.sweep(now=later(settings.RELAY_UNSIGNED_SECONDS + 1))
    assert not UnsignedCall.objects.exists()
    assert balance_of(user) == before
    assert not CreditHold.objects.exists()
    # A response that comes now is too late.
    row = unsigned.Unsigned(waiting.call, waiting.relayer.address)
    (outcome,) = unsigned.complete([row])
    assert isinstance(outcome, SignerUnavailable)
    Relayer.objects.exclude(pk=waiting.relayer_id).update(is_active=False)
    assert execute(user=user, call=call, now=timezone.now())
    broadcast_all()
    assert [watch.fill(head=head, now=later(seconds)) for seconds in (30, 50)] == [0, 1]
    filler = GapFiller.objects.get()
    assert (filler.relayer_id, filler.account_nonce) == (waiting.relayer_id, waiting.account_nonce)
    assert settle() == 1
    _assert_no_gap()


def test_while_the_signer_is_known_to_be_silent_nothing_is_taken(
    user: User, new_call: NewCall, accept: Accept
) -> None:
    with away(), patch.object(RemoteSigner, "pause_seconds", 1_000.0):
        with pytest.raises(SignerUnavailable):
            execute(user=user, call=new_call(), now=timezone.now())
        before = list(Relayer.objects.order_by("pk").values()), CreditHold.objects.count()
        with pytest.raises(SignerUnavailable):
            execute(user=user, call=new_call(channel=7), now=timezone.now())
        assert (list(Relayer.objects.order_by("pk").values()), CreditHold.objects.count()) == before
        assert unsigned.waiting().calls == 1
    remote_signer().refused_until = 0.0
    accept(channel=7)
    # Its health is good, so the next one goes to it; that one fails again.
    with away(), pytest.raises(SignerUnavailable):
        execute(user=user, call=new_call(channel=8), now=timezone.now())
    assert unsigned.waiting().calls == 2


def test_a_signer_that_stalls_past_the_deadline_signs_nothing_on_resuming(
    user: User,
    new_call: NewCall,
    chain: Chain,
    signers: RemoteSigners,
    settings: Settings,
    settle: Callable[[], int],
) -> None:
    settings.SIGNER_TIMEOUT_SECONDS = 1
    set_signer(None)
    call, before = new_call(), balance_of(user)
    get_signer().addresses()
    with signers.service._lock:
        with pytest.raises(SignerUnavailable):
            execute(user=user, call=call, now=timezone.now())
        (waiting,) = UnsignedCall.objects.all()
        unsigned.sweep(now=later(settings.RELAY_UNSIGNED_SECONDS + 1))
        assert not UnsignedCall.objects.exists()
        assert (balance_of(user), CreditHold.objects.count()) == (before, 0)
        with pytest.raises(SignerUnavailable):
            execute(user=user, call=call, now=timezone.now())
    wait_until(lambda: signers.service.counts["undecided"] >= 1)
    assert signers.service.signed_ever() == 0
    Relayer.objects.exclude(pk=waiting.relayer_id).update(is_active=False)
    assert execute(user=user, call=call, now=timezone.now())
    assert Attempt.objects.get().account_nonce == waiting.account_nonce + 1
    watch, head = GapWatch(), get_chain_client().head()
    assert [watch.fill(head=head, now=later(seconds)) for seconds in (0, 20)] == [0, 1]
    assert settle() == 1
    assert signers.service.signed_ever() == 2
    _assert_no_gap()


def test_a_key_is_replaced_without_a_lost_call(
    user: User,
    new_call: NewCall,
    accept: Accept,
    chain: Chain,
    relayers: list[Relayer],
    signers: RemoteSigners,
    settle: Callable[[], int],
) -> None:
    old, left_out = relayers[0], relayers[1:]
    Relayer.objects.filter(pk__in=[relayer.pk for relayer in left_out]).update(is_active=False)
    sent, left_unsigned = accept(), new_call(channel=7)
    with away(), pytest.raises(SignerUnavailable):
        execute(user=user, call=left_unsigned, now=timezone.now())

    new_key, treasury = MemoryKey(secrets.token_bytes(32)), signers.keys.treasury
    with signers.restarted(Keyring.of([*signers.keys.relayers.values(), new_key], [], treasury)):
        chain.fund(10**20, new_key.address)
        relay_relayers.sync(now=timezone.now())
        Relayer.objects.filter(pk=old.pk).update(is_active=False)
        new = Relayer.objects.get(address=new_key.address)
        assert accept(channel=8).attempts.get().relayer_id == new.pk
        # What the old key has begun, it finishes.
        finished = accept(left_unsigned)
        assert {row.attempts.get().relayer_id for row in (sent, finished)} == {old.pk}
        assert settle() == 3
        old.refresh_from_db()
        relay_relayers.sync(now=timezone.now())
        old.refresh_from_db()
        assert old.next_account_nonce == old.mined_account_nonce

    with signers.restarted(Keyring.of([new_key], [], treasury)):
        assert accept(channel=9).attempts.get().relayer_id == new.pk
        assert settle() == 1
    assert set(RelayTransaction.objects.values_list("status", flat=True)) == {"Success"}
    _assert_no_gap()


def test_a_call_refused_by_the_signers_policy_gets_a_clear_error_and_leaves_nothing(
    user: User, new_call: NewCall, signers: RemoteSigners, caplog: pytest.LogCaptureFixture
) -> None:
    signers.allow(replace(signers.policy, limits=replace(signers.policy.limits, max_gas=21_000)))
    before = balance_of(user)
    with pytest.raises(SignerUnavailable, match="refuses this call") as refusal:
        execute(user=user, call=new_call(), now=timezone.now())
    assert (refusal.value.status, refusal.value.retry_after) == (503, 60)
    assert "gas limit above the cap" in caplog.text
    assert (balance_of(user), CreditHold.objects.count(), UnsignedCall.objects.count()) == (before, 0, 0)


def test_a_refused_call_is_not_executed_by_a_late_signature(
    user: User, new_call: NewCall, signers: RemoteSigners, settle: Callable[[], int]
) -> None:
    call = new_call()
    with away(), pytest.raises(SignerUnavailable):
        execute(user=user, call=call, now=timezone.now())
    waiting = UnsignedCall.objects.get()
    signers.allow(replace(signers.policy, limits=replace(signers.policy.limits, max_gas=21_000)))
    with pytest.raises(SignerUnavailable, match="refuses this call"):
        execute(user=user, call=call, now=timezone.now())
    signers.allow(signers.policy)
    # Another process had asked for the same signature, and gets it only now.
    (late,) = unsigned.complete([unsigned.Unsigned(waiting.call, waiting.relayer.address)])
    assert isinstance(late, SignerUnavailable)
    assert not RelayTransaction.objects.exists()
    assert settle() == 0
    assert (
        execute(user=user, call=call, now=timezone.now()) == RelayTransaction.objects.get().transaction_hash
    )
    assert settle() == 1
    _assert_no_gap()


def test_a_call_stored_by_another_process_keeps_its_hash_despite_the_signers_refusal(
    user: User, new_call: NewCall, signers: RemoteSigners
) -> None:
    call = new_call()
    with away(), pytest.raises(SignerUnavailable):
        execute(user=user, call=call, now=timezone.now())
    sign = SignerClient.sign
    stored: list[str] = []

    def signed_elsewhere_first(client: SignerClient, requests: list[SigningRequest]) -> list[Outcome]:
        if not stored:
            stored.append("")
            stored[0] = execute_elsewhere(user=user, call=call, now=timezone.now())
            return [PolicyViolation("as a test wants it")] * len(requests)
        return sign(client, requests)

    with patch.object(SignerClient, "sign", signed_elsewhere_first):
        assert execute(user=user, call=call, now=timezone.now()) == stored[0]
    assert CreditHold.objects.count() == RelayTransaction.objects.count() == 1
    _assert_no_gap()


def _left_waiting(user: User, call: RelayCall) -> None:
    with away(), pytest.raises(SignerUnavailable):
        execute(user=user, call=call, now=timezone.now())
    assert (UnsignedCall.objects.count(), CreditHold.objects.count()) == (1, 1)


def test_a_call_signed_again_while_the_first_waits_gets_the_hash_of_the_first(
    user: User, new_call: NewCall, settle: Callable[[], int]
) -> None:
    payload = set_data_payload()
    _left_waiting(user, new_call(payload=payload))
    again = new_call(payload=payload, validity=window(0, int(timezone.now().timestamp()) + 3_600))
    with away(), pytest.raises(SignerUnavailable):
        execute(user=user, call=again, now=timezone.now())
    assert (UnsignedCall.objects.count(), CreditHold.objects.count()) == (1, 1)

    transaction_hash = execute(user=user, call=again, now=timezone.now())

    row = RelayTransaction.objects.get()
    assert (row.transaction_hash, row.validity) == (transaction_hash, 0)
    assert CreditHold.objects.count() == 1
    assert not UnsignedCall.objects.exists()
    assert settle() == 1
    _assert_no_gap()


def test_other_content_on_the_nonce_of_a_call_that_waits_is_refused_once_that_call_is_accepted(
    user: User, new_call: NewCall
) -> None:
    first = new_call()
    _left_waiting(user, first)
    with pytest.raises(RelayNonceTaken):
        execute(user=user, call=new_call(), now=timezone.now())
    assert not UnsignedCall.objects.exists()
    assert bytes(RelayTransaction.objects.get().payload) == first.payload
    assert CreditHold.objects.count() == 1
    _assert_no_gap()


def test_a_nonce_is_free_again_once_the_signer_refuses_the_call_that_waits_with_it(
    user: User, new_call: NewCall, signers: RemoteSigners, settle: Callable[[], int]
) -> None:
    _left_waiting(user, new_call(payload=set_data_payload(secrets.token_bytes(1_000))))
    waiting = UnsignedCall.objects.get()
    limits = replace(signers.policy.limits, max_gas=waiting.call["gas_limit"] - 1)
    signers.allow(replace(signers.policy, limits=limits))
    second = new_call()
    transaction_hash = execute(user=user, call=second, now=timezone.now())
    row = RelayTransaction.objects.get()
    assert (row.transaction_hash, bytes(row.payload)) == (transaction_hash, second.payload)
    assert CreditHold.objects.count() == 1
    assert settle() == 1
    _assert_no_gap()


def test_a_refused_call_leaves_nothing_and_the_next_one_gets_its_account_nonce(
    user: User, new_call: NewCall, signers: RemoteSigners, accept: Accept
) -> None:
    signers.allow(replace(signers.policy, gas_per_hour=10))
    relayers, before = list(Relayer.objects.order_by("pk").values()), balance_of(user)
    with pytest.raises(SignerUnavailable, match="no more gas for now"):
        execute(user=user, call=new_call(), now=timezone.now())
    assert list(Relayer.objects.order_by("pk").values()) == relayers
    assert balance_of(user) == before
    assert not CreditHold.objects.exists()
    signers.allow(signers.policy)
    accept()
    _assert_no_gap()


def test_an_account_nonce_that_the_signer_knows_otherwise_is_used_up_and_not_offered_again(
    user: User, new_call: NewCall, relayers: list[Relayer], signers: RemoteSigners, chain: Chain
) -> None:
    # As after a fail-over of the database that forgot an accepted call.
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    forgotten = new_call()
    execute(user=user, call=forgotten, now=timezone.now())
    row = RelayTransaction.objects.get()
    nonce = row.attempts.get().account_nonce
    row.attempts.all().delete()
    hold = row.hold_id
    row.delete()
    db.all_rows("SELECT credits_withdraw_holds(ARRAY[%(hold)s])::text", {"hold": hold})
    Relayer.objects.filter(pk=relayers[0].pk).update(next_account_nonce=nonce)

    with pytest.raises(SignerUnavailable, match="in time"):
        execute(user=user, call=new_call(), now=timezone.now())
    assert Relayer.objects.get(pk=relayers[0].pk).next_account_nonce == nonce + 1
    assert execute(user=user, call=new_call(), now=timezone.now())
    assert Attempt.objects.get().account_nonce == nonce + 1
    watch = GapWatch()
    head = get_chain_client().head()
    assert [watch.fill(head=head, now=later(seconds)) for seconds in (0, 20)] == [0, 1]
    _assert_no_gap()


def test_fees_are_bumped_and_calls_cancelled_without_network_requests_in_a_transaction(
    accept: Accept, chain: Chain, settle: Callable[[], int]
) -> None:
    first, second = accept(), accept(channel=7)
    broadcast_all()
    attempt = first.attempts.get()
    assert replacement.replace(attempt_id=attempt.pk, fees=bumped_fees(attempt), now=timezone.now())
    doomed = second.attempts.get()
    assert cancellation.begin(
        attempt=doomed,
        terminal_status=RelayTransaction.Status.CANCELLED,
        code="test",
        detail="",
        fees=bumped_fees(doomed),
        now=timezone.now(),
    )
    assert settle() == 2
    assert sorted(RelayTransaction.objects.values_list("status", flat=True)) == ["Cancelled", "Success"]
    _assert_no_gap()


def test_the_treasury_of_the_signer_tops_relayers_up(
    chain: Chain, signers: RemoteSigners, relayers: list[Relayer], settings: Settings
) -> None:
    treasury = get_treasury()
    assert treasury is not None
    chain.fund(10**19, treasury.address)
    chain.fund(0, relayers[0].address)
    relay_relayers.sync(now=timezone.now())
    sent = funding.top_up(now=timezone.now())
    assert sent is not None
    assert (sent.relayer_id, sent.treasury_address) == (relayers[0].pk, treasury.address)
    chain.mine()
    relay_relayers.sync(now=timezone.now())
    assert Relayer.objects.get(pk=relayers[0].pk).balance_wei == settings.RELAY_TOP_UP_TO_WEI


def _post_elsewhere(user: User, call: RelayCall) -> Callable[[], str]:
    return lambda: execute_elsewhere(user=user, call=call, now=timezone.now())


@pytest.mark.django_db(transaction=True)
def test_many_equal_posts_of_several_processes_give_one_hash_and_one_charge(
    user: User, new_call: NewCall, signers: RemoteSigners
) -> None:
    results = at_once([_post_elsewhere(user, new_call())] * 16)
    hashes = {result for result in results if not isinstance(result, SignerUnavailable)}
    assert hashes == {RelayTransaction.objects.get().transaction_hash}
    assert CreditHold.objects.count() == signers.service.signed_ever() == 1
    _assert_no_gap()


@pytest.mark.django_db(transaction=True)
def test_of_several_calls_with_one_relay_nonce_one_is_accepted(user: User, new_call: NewCall) -> None:
    results = at_once([_post_elsewhere(user, new_call()) for _ in range(8)])
    hashes = [result for result in results if isinstance(result, str)]
    assert hashes == [RelayTransaction.objects.get().transaction_hash]
    assert sum(isinstance(result, RelayNonceTaken) for result in results) == 7
    assert CreditHold.objects.count() == 1
    assert not UnsignedCall.objects.exists()
