"""Deliveries to receivers of every kind: away, slow, gone, broken for a while, redirecting, killed in between."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from standardwebhooks import Webhook, WebhookVerificationError

from devstack.ports import free_port
from tests.factories import UserFactory
from tests.webhooks.conftest import App
from tests.webhooks.receiver import running
from webhooks.models import Delivery, Endpoint, Message, Subject
from webhooks.services import delivery, endpoints, messages

pytestmark = pytest.mark.django_db
_SOON = timedelta(seconds=10)


def write(app: App, *keys: str, ordering_key: str = "") -> list[Message]:
    """Write a message for each key; those of one ordering key stay in order."""
    return [
        Message.objects.create(
            endpoint=app.endpoint,
            type="call.settled",
            key=key,
            ordering_key=ordering_key or key,
            body=f'{{"type":"call.settled","data":{{"key":"{key}","sign":"✓"}}}}',
        )
        for key in keys
    ]


def sent(app: App) -> list[str]:
    return [request.content["data"]["key"] for request in app.receiver.requests]


def test_the_standards_own_library_accepts_the_signature(app: App) -> None:
    [message] = write(app, "one")
    assert app.deliver() == 1

    [request] = app.receiver.requests
    assert request.verified(app.secret)["data"] == {"key": "one", "sign": "✓"}
    assert (request.path, request.event_id) == ("/hooks", message.public_id)
    with pytest.raises(WebhookVerificationError):
        request.verified("whsec_" + "A" * 44)
    message.refresh_from_db()
    assert (message.status, message.attempts) == ("delivered", 1)
    assert app.deliver() == 0


def test_while_a_secret_is_replaced_both_sign(app: App) -> None:
    newer = endpoints.rotate_secret(app.endpoint)
    write(app, "one")
    app.deliver()
    endpoints.retire_secret(app.endpoint)
    write(app, "two")
    app.deliver()

    first, second = app.receiver.requests
    assert first.verified(app.secret) == first.verified(newer)
    assert second.verified(newer)
    with pytest.raises(WebhookVerificationError):
        second.verified(app.secret)


def test_a_receiver_that_fails_for_a_while_gets_the_message_later(app: App) -> None:
    [message] = write(app, "one")
    app.receiver.answers += [503, 500]
    assert [app.deliver(), app.deliver(), app.deliver(after=_SOON)] == [1, 0, 1]
    assert app.refreshed().failing_since is not None
    assert [app.deliver(after=_SOON), app.deliver(after=timedelta(minutes=6))] == [0, 1]

    assert len({request.event_id for request in app.receiver.requests}) == 1
    message.refresh_from_db()
    assert (message.status, app.refreshed().failing_since) == ("delivered", None)
    assert list(message.deliveries.order_by("number").values_list("response_status", flat=True)) == [
        503,
        500,
        204,
    ]


def test_a_receiver_that_is_away_is_tried_for_three_days(app: App) -> None:
    Endpoint.objects.update(url=f"http://127.0.0.1:{free_port()}/")
    [message] = write(app, "one")
    after = timedelta(0)
    while app.deliver(after=after):
        message.refresh_from_db()
        after = message.next_attempt_at - timezone.now() + timedelta(seconds=1)

    assert (message.status, message.attempts) == ("given-up", delivery.MAX_ATTEMPTS)
    assert timedelta(days=2.7) < after < timedelta(days=3.6)
    assert set(message.deliveries.values_list("error", "response_status")) == {
        ("ConnectionRefusedError: [Errno 111] Connection refused", None)
    }


def test_receivers_that_hang_leave_threads_for_one_that_responds(
    app: App, create_endpoint: Callable[..., tuple[Endpoint, str]], settings: Any
) -> None:
    settings.WEBHOOK_TIMEOUT_SECONDS = 60
    served, in_time = threading.Event(), []
    app.receiver.before_response = lambda _: in_time.append(served.wait(20))
    hanging = [app] + [
        App(*create_endpoint(name=f"hanging {number}", url=app.receiver.url), app.receiver)
        for number in range(5)
    ]
    for one in hanging:
        write(one, *"abcd")
    with running() as prompt:
        prompt.before_response = lambda _: served.set() if len(prompt.requests) == 6 else None
        other = App(*create_endpoint(name="prompt", url=prompt.url), prompt)
        write(other, *"uvwxyz")
        other.deliver()
        assert sorted(sent(other)) == list("uvwxyz")

    assert in_time
    assert all(in_time)


@pytest.mark.django_db(transaction=True)
def test_a_message_stored_while_a_receiver_hangs_is_sent_at_once(
    app: App, create_endpoint: Callable[..., tuple[Endpoint, str]], settings: Any
) -> None:
    settings.WEBHOOK_TIMEOUT_SECONDS = 60
    served, in_time = threading.Event(), []
    with running() as prompt:
        prompt.before_response = lambda _: served.set()
        other = App(*create_endpoint(name="prompt", url=prompt.url), prompt)

        def hang(_: object) -> None:
            write(other, "later")
            connection.close()
            in_time.append(served.wait(20))

        app.receiver.before_response = hang
        write(app, "one")
        app.deliver()
        assert (in_time, sent(other)) == ([True], ["later"])


def test_an_endpoint_that_did_not_respond_is_left_after_the_timeout(app: App, settings: Any) -> None:
    settings.WEBHOOK_TIMEOUT_SECONDS = 1
    over = threading.Event()
    app.receiver.before_response = lambda _: over.wait(60)
    write(app, "one")
    app.deliver()
    over.set()
    row = Delivery.objects.get()
    assert (row.response_status, row.error) == (None, "No response within 1 seconds.")


def test_status_410_disables_the_endpoint_and_pending_messages_are_sent_once_enabled(app: App) -> None:
    write(app, "one", "two", ordering_key="same")
    app.receiver.answers += [410]
    app.deliver()
    assert (app.refreshed().disabled_by, app.deliver(after=_SOON)) == ("gone", 0)

    endpoints.enable(app.endpoint, now=timezone.now())
    app.deliver(after=_SOON)
    assert sent(app) == ["one", "one", "two"]


def test_an_endpoint_that_fails_for_days_is_disabled(app: App, settings: Any) -> None:
    write(app, "one")
    app.receiver.answers += [500, 500]
    app.deliver()
    app.deliver(after=timedelta(days=settings.WEBHOOK_DISABLE_DAYS, minutes=1))
    assert (app.refreshed().disabled_by, len(app.waiting())) == ("failing", 1)


def test_a_redirect_is_not_followed(app: App) -> None:
    with running() as internal:
        app.receiver.answers += [internal.url]
        write(app, "one")
        app.deliver()
        assert (internal.requests, Delivery.objects.get().response_status) == ([], 307)
    assert app.waiting()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1", "[::ffff:127.0.0.1]", "[::1]"])
def test_an_internal_address_gets_nothing(app: App, settings: Any, host: str) -> None:
    settings.WEBHOOK_ALLOW_LOOPBACK = False
    Endpoint.objects.update(url=app.receiver.url.replace("127.0.0.1", host))
    write(app, "one")
    app.deliver()
    assert app.receiver.requests == []
    assert Delivery.objects.get().error.endswith("is not a public address.")


def test_a_calls_messages_are_sent_in_order_and_do_not_wait_for_others(app: App) -> None:
    write(app, "a1", "a2", "a3", ordering_key="a")
    write(app, "b1", "b2", ordering_key="b")
    app.receiver.refuses_once = "a1"
    app.deliver()
    assert sorted(sent(app)) == ["a1", "b1", "b2"]
    assert sent(app).index("b1") < sent(app).index("b2")

    app.deliver(after=_SOON)
    assert sent(app)[3:] == ["a1", "a2", "a3"]


def test_a_worker_that_crashes_before_storing_the_response_resends(app: App) -> None:
    [message] = write(app, "one")
    [claimed] = delivery.claim(app.endpoint, limit=4, now=timezone.now())
    first = delivery.send(claimed, [app.secret])
    # A kill leaves this: the receiver has it, and no row records that.
    assert (first.status, app.deliver(), app.deliver(after=delivery.CLAIM_TIME + _SOON)) == (204, 0, 1)

    assert [request.event_id for request in app.receiver.requests] == [message.public_id] * 2
    message.refresh_from_db()
    assert message.status == "delivered"


def test_a_late_failure_leaves_the_attempt_after_it_alone(app: App) -> None:
    write(app, "one")
    now = timezone.now()
    [first] = delivery.claim(app.endpoint, limit=4, now=now)
    [second] = delivery.claim(app.endpoint, limit=4, now=now + delivery.CLAIM_TIME)
    claimed_until = Message.objects.get().next_attempt_at
    delivery.record(first, delivery.Result(now, 1, 500), now=now)
    assert Message.objects.get().next_attempt_at == claimed_until

    delivery.record(second, delivery.Result(now, 1, 500), now=now)
    assert Message.objects.get().next_attempt_at != claimed_until
    assert Message.objects.get().deliveries.count() == 2


def test_messages_can_be_sent_again(app: App) -> None:
    one, two = write(app, "one", "two")
    app.deliver()
    assert messages.resend(one, now=timezone.now())
    assert not messages.resend(one, now=timezone.now())
    app.deliver()
    assert sorted(sent(app)) == ["one", "one", "two"]

    now = timezone.now()
    Message.objects.filter(pk=two.pk).update(status="given-up", finished_at=now)
    assert messages.resend_given_up(app.endpoint, since=now + _SOON, now=now) == 0
    assert messages.resend_given_up(app.endpoint, since=now, now=now) == 1
    app.deliver()
    assert sorted(sent(app)) == ["one", "one", "two", "two"]


def test_only_old_messages_are_deleted(app: App, settings: Any) -> None:
    write(app, "old", "new", "waiting")
    now = timezone.now()
    long_ago = now - timedelta(days=settings.WEBHOOK_KEPT_DAYS, minutes=1)
    for key, at in (("old", long_ago), ("new", now)):
        Message.objects.filter(key=key).update(status="delivered", finished_at=at)
    assert messages.purge(now=now) == 1
    assert set(Message.objects.values_list("key", flat=True)) == {"new", "waiting"}


def test_nothing_is_kept_of_a_user_who_leaves(app: App) -> None:
    leaving, staying = UserFactory.create(), UserFactory.create()
    for person in (leaving, staying):
        [message] = write(app, str(person.pk))
        Message.objects.filter(pk=message.pk).update(user=person)
        Subject.objects.create(endpoint=app.endpoint, user=person, kind="call", row_id=person.pk)
    delivery.record(Message.objects.all()[0], delivery.Result(timezone.now(), 1, 500), now=timezone.now())
    messages.forget(leaving)
    assert Message.objects.get().user == Subject.objects.get().user == staying


def test_a_timestamp_of_the_signature_is_that_of_the_attempt(app: App) -> None:
    [message] = write(app, "one")
    moment = timezone.now() - timedelta(minutes=6)
    headers = delivery.signed_headers(message, [app.secret], moment)
    with pytest.raises(WebhookVerificationError, match="too old"):
        Webhook(app.secret).verify(message.body, headers)
