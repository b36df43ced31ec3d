"""Two members of staff, and a draft of the one that the other may publish."""

from decimal import Decimal

import pytest

from checkin.models import DropTable
from rewards.models import BadgeTrack
from tests.checkin.items import item
from tests.checkin.rows import draft_table, lowest
from tests.factories import UserFactory
from users.models import User


@pytest.fixture
def author() -> User:
    """Return a member of staff who writes tables."""
    return UserFactory.create(profile_address=None, is_staff=True, is_superuser=True)


@pytest.fixture
def approver() -> User:
    """Return a member of staff who approves them."""
    return UserFactory.create(profile_address=None, is_staff=True, is_superuser=True)


@pytest.fixture
def draft(author: User) -> DropTable:
    """Return a draft that may be published."""
    items = [item("EXPERIENCE", least=Decimal(1), most=Decimal(3)), item("BONUS_CREDITS_BACK")]
    return draft_table(lowest(BadgeTrack.PERMANENT), items, author=author)
