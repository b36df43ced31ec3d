"""Opening accounts."""

from functools import partial

from credits.models import CreditAccount
from credits.services import entries
from tests.credits.rows import everything
from tests.factories import UserFactory
from tests.threads import at_once
from users.models import User


def test_an_account_opens_empty(db: None) -> None:
    user = UserFactory.create()
    account = entries.open_account(user_id=user.pk)
    assert (account.user, account.balance, account.held, account.version) == (user, 0, 0, 0)
    assert account.created_at is not None


def test_opening_again_returns_the_account_as_it_is(user: User, funds: int) -> None:
    before = everything()
    assert entries.open_account(user_id=user.pk).balance == funds
    assert everything() == before


def test_16_concurrent_openings_open_one_account(transactional_db: None) -> None:
    user = UserFactory.create()
    accounts = at_once([partial(entries.open_account, user_id=user.pk)] * 16, in_transaction=True)
    assert {account.pk for account in accounts if isinstance(account, CreditAccount)} == {
        CreditAccount.objects.get(user=user).pk
    }
