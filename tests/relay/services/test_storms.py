"""Many requests at the same moment: each call is accepted once, nothing is overspent, no account nonce is missing."""

from collections.abc import Callable
from functools import partial

import pytest
from django.utils import timezone

from credits.models import CreditHold
from credits.services.reconcile import find_differences
from gateway.chain.lsp25 import RelayCall
from relay.models import Attempt, RelayTransaction
from relay.services.execution import execute
from tests.relay.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_same_call_50_times_at_once_is_accepted_once(
    user: User, new_call: Callable[..., RelayCall], settle: Callable[[], int]
) -> None:
    call = new_call()

    answers = at_once([partial(execute, user=user, call=call, now=timezone.now())] * 50)

    row, attempt, hold = RelayTransaction.objects.get(), Attempt.objects.get(), CreditHold.objects.get()
    assert set(answers) == {row.transaction_hash}
    assert (row.hold_id, attempt.relay_transaction_id) == (hold.pk, row.pk)
    assert settle() == 1
    assert find_differences() == []
