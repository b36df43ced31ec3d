"""Of the threads that read from nodes, each user has a share, whatever the user's calls cost a node."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from pytest_django import Settings

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from relay.errors import RelayShareUsed
from relay.services.accepting import limits
from tests.relay.conftest import Refused
from tests.relay.quoting import prepare
from users.models import User

pytestmark = pytest.mark.django_db
_SHARE = 2


@pytest.fixture(autouse=True)
def few_threads(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.WEB_THREADS = 8 * _SHARE
    monkeypatch.setattr(limits, "_SHARE_SECONDS", 0)
    limits._readers.cache_clear()
    yield
    limits._readers.cache_clear()


def test_a_user_whose_requests_have_the_share_gets_503_and_others_are_served(
    services: Services,
    user: User,
    profile: Profile,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    refused: Refused,
) -> None:
    another = create_profile()
    other = open_account(another, 1000)
    with ExitStack() as reading:
        for _ in range(_SHARE):
            reading.enter_context(limits.share_of_nodes(user.pk))
        with refused(RelayShareUsed) as refusal:
            prepare(user, profile)
        assert (refusal.value.retry_after, refusal.value.members["maximum"]) == (1, _SHARE)
        assert prepare(other, another).refusals == ()
    assert prepare(user, profile).refusals == ()
