"""Open tasks come first: pauses, requests that wait for the reader's decision, and e-mails about them."""

import re
import secrets

import pytest
from django.core import mail
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from credits.services import adjustments
from gateway.staff import approvals, pauses
from gateway.staff.models import ApprovalRequest
from gateway.staff.tasks import announce_request
from tests.factories import UserFactory
from tests.staff import browser_of, member
from users.models import User

pytestmark = pytest.mark.django_db


def ask(actor: User) -> ApprovalRequest:
    """Ask for more credits than anybody may move alone."""
    return adjustments.request(
        user=UserFactory.create(),
        credits=1_000_000,
        actor=actor,
        key=secrets.token_hex(8),
        reason="paid twice",
    )


def front_page(person: User) -> str:
    return browser_of(person).get("/admin/").content.decode()


def badges(page: str) -> list[str]:
    """Return the number beside the list of requests in the sidebar, if there is one."""
    return re.findall(r'approvalrequest/"[^\n]*<span class="count">(\d+)</span>', page)


def test_pauses_are_listed_before_the_figures_with_their_actor_and_reason() -> None:
    clerk = member("operations")
    assert "Paused" not in front_page(clerk)
    reason = secrets.token_hex(8)
    pauses.switch("relay", is_paused=True, actor=clerk, reason=reason)
    page = front_page(member("support"))
    place = page.index("Paused: the whole relay.")
    assert clerk.username in page[place : page.index(reason)]
    assert place < page.index("Success rate")
    pauses.switch("relay", is_paused=False, actor=clerk, reason="done")
    assert "Paused" not in front_page(clerk)


def test_front_page_and_sidebar_count_only_requests_that_the_reader_may_decide() -> None:
    asker, finance = member("support"), member("finance")
    first, _ = ask(asker), ask(asker)
    assert "2 requests wait for your decision" in front_page(finance)
    assert badges(front_page(finance)) == ["2"]
    # Support asks and does not decide; what operations decide is something else.
    for other in (asker, member("support"), member("operations")):
        page = front_page(other)
        assert ("for your decision" in page, badges(page)) == (False, [])
    approvals.reject(request_id=first.pk, actor=finance, reason="no")
    assert "1 request waits for your decision" in front_page(finance)
    listed = browser_of(finance).get("/admin/gateway_admin/approvalrequest/?state=mine")
    assert listed.context["cl"].result_count == 1


def test_a_pending_request_is_announced_only_after_it_is_stored(
    settings: Settings, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks() as sent:
        request = ask(member("support"))
    announce_request(request_id=request.pk)
    assert (sent, mail.outbox) == ([], [])

    settings.APPROVAL_NOTICE_TO = ["desk@example.org"]
    with django_capture_on_commit_callbacks() as sent:
        request = ask(member("support"))
    assert len(sent) == 1
    announce_request(request_id=request.pk)
    [message] = mail.outbox
    assert message.to == ["desk@example.org"]
    assert message.subject == "Adjust credits: waits for finance or superuser"
    assert f"http://testserver/admin/gateway_admin/approvalrequest/{request.pk}/change/" in message.body
    assert request.subject not in message.body
    assert request.reason not in message.body

    approvals.reject(request_id=request.pk, actor=member("finance"), reason="no")
    announce_request(request_id=request.pk)
    assert len(mail.outbox) == 1
