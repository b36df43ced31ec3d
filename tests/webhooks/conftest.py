"""A wallet app with an endpoint, and people who are signed in there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import UserFactory, random_address
from tests.webhooks.receiver import Receiver, running
from users.models import SignInSession, User
from webhooks.models import OFFERED, Endpoint, Message
from webhooks.services import collection, delivery, endpoints

ORIGIN = "https://wallet.example"


@dataclass(frozen=True)
class App:
    """An endpoint with its secret, and the receiver behind it."""

    endpoint: Endpoint
    secret: str
    receiver: Receiver

    def waiting(self) -> list[Message]:
        return list(self.endpoint.messages.filter(status=Message.Status.WAITING).order_by("pk"))

    def deliver(self, *, after: timedelta = timedelta(0)) -> int:
        """Let the worker run so much later."""
        return delivery.deliver_due(now=timezone.now() + after)

    def refreshed(self) -> Endpoint:
        return Endpoint.objects.get(pk=self.endpoint.pk)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running() as started:
        yield started


@pytest.fixture
def create_endpoint(db: None, settings: Any) -> Callable[..., tuple[Endpoint, str]]:
    """Return what makes an endpoint, as staff would, and its secret."""
    settings.WEBHOOK_ALLOW_HTTP = settings.WEBHOOK_ALLOW_LOOPBACK = True

    def create(**values: Any) -> tuple[Endpoint, str]:
        every_type = [value for value, _ in OFFERED]
        row = Endpoint(**{"name": "wallet", "origins": [ORIGIN], "event_types": every_type, **values})
        row.enabled_at = timezone.now() - timedelta(minutes=1)
        row.full_clean(exclude=["current_secret"])
        return row, endpoints.create(row)

    return create


@pytest.fixture
def app(receiver: Receiver, create_endpoint: Callable[..., tuple[Endpoint, str]]) -> App:
    """The app that listens."""
    return App(*create_endpoint(url=receiver.url), receiver)


def sign_in(user: User, origin: str = ORIGIN, **values: Any) -> SignInSession:
    """Leave what a sign-in leaves that took place a while ago."""
    began = timezone.now() - timedelta(hours=1)
    defaults = {"created_at": began, "expires_at": began + timedelta(days=30)}
    return SignInSession.objects.create(
        user=user, controller_address=random_address(), origin=origin, **{**defaults, **values}
    )


@pytest.fixture
def user(app: App) -> User:
    """A signed-in user whose credits and earnings were read before."""
    person = UserFactory.create()
    sign_in(person)
    collection.collect(now=timezone.now())
    return person
