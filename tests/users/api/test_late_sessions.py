"""Views that read the session with their own statement: whom they get, and that an ended session is the first fault."""

import secrets
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from credits.errors import InsufficientCredits
from gateway.common.errors import InvalidRequest
from tests.fakes.profiles import Profile
from tests.users.auth_client import signed_in
from users import queries
from users.api.authentication import SessionReadLate, VerifiedTokenAuthentication
from users.errors import AccountInactive, SessionEnded
from users.models import SignInSession, User
from users.services import sessions
from users.services.sessions import TokenPair
from users.tokens import TokenHolder

pytestmark = pytest.mark.django_db


class View(SessionReadLate, APIView):
    """Refuses every request, as if its body were wrong."""

    authentication_classes = (VerifiedTokenAuthentication,)
    error: Exception = InvalidRequest("The body is wrong.")

    def post(self, request: Request) -> Response:
        raise self.error


@pytest.fixture
def pair(profile: Profile) -> TokenPair:
    """The tokens of a signed-in profile."""
    return signed_in(profile)


def _request(token: str) -> Any:
    return APIRequestFactory().post("/", HTTP_AUTHORIZATION=f"Bearer {token}")


def _refused(token: str, view: Any = None) -> tuple[int, str]:
    response = (view or View.as_view())(_request(token))
    return response.status_code, response.data["code"]


def test_a_verified_token_names_its_holder_without_a_query(pair: TokenPair) -> None:
    session = SignInSession.objects.get()

    with CaptureQueriesContext(connection) as statements:
        authenticated = VerifiedTokenAuthentication().authenticate(Request(_request(pair.access)))

    assert authenticated is not None
    holder: Any = authenticated[0]
    assert holder == TokenHolder(session.user_id, pair.profile_address, session.pk)
    assert (holder.pk, len(statements)) == (session.user_id, 0)


def _revoke(session: SignInSession) -> None:
    sessions.end(session_id=session.pk, reason=SignInSession.Reason.STAFF, now=now())


def _let_it_expire(session: SignInSession) -> None:
    SignInSession.objects.update(expires_at=now())


def _forget_the_session(session: SignInSession) -> None:
    session.delete()


def _close_the_account(session: SignInSession) -> None:
    User.objects.filter(pk=session.user_id).update(is_active=False)


ENDINGS = [
    (_revoke, SessionEnded),
    (_let_it_expire, SessionEnded),
    (_forget_the_session, SessionEnded),
    (_close_the_account, AccountInactive),
]


@pytest.mark.parametrize(("ending", "fault"), ENDINGS)
def test_an_invalid_token_gets_the_same_error_as_with_an_early_session_read(
    pair: TokenPair, ending: Any, fault: Any
) -> None:
    session = SignInSession.objects.get()
    holder = TokenHolder(session.user_id, pair.profile_address, session.pk)
    sessions.require_active(holder, now=now())

    ending(session)

    with pytest.raises(fault):
        sessions.require_active(holder, now=now())
    assert _refused(pair.access) == (401, fault.code)


def test_another_users_session_and_an_unknown_user_are_refused(pair: TokenPair) -> None:
    session = SignInSession.objects.get()
    other = User.objects.create(username=secrets.token_hex(8))

    for user_id, session_id in (
        (other.pk, session.pk),
        (other.pk + 1, session.pk),
        (other.pk + 1, None),
        (session.user_id, uuid.uuid4()),
    ):
        with pytest.raises(SessionEnded):
            sessions.require_active(TokenHolder(user_id, pair.profile_address, session_id), now=now())


def test_a_user_of_an_external_issuer_needs_no_session_but_an_open_account() -> None:
    user = User.objects.create(username=secrets.token_hex(8))

    assert queries.state_of_session(user_id=user.pk, session_id=None, now=now()) == "active"
    User.objects.update(is_active=False)
    assert queries.state_of_session(user_id=user.pk, session_id=None, now=now()) == "inactive"


def test_a_session_ends_at_its_last_moment(pair: TokenPair) -> None:
    session = SignInSession.objects.get()
    token: dict[str, Any] = {"user_id": session.user_id, "session_id": session.pk}

    before = session.expires_at - timedelta(microseconds=1)
    assert queries.state_of_session(**token, now=before) == "active"
    assert queries.state_of_session(**token, now=session.expires_at) == "ended"


@pytest.mark.parametrize(
    "error", [InvalidRequest("Wrong."), InsufficientCredits(required=2, available=1, debt_limit=0)]
)
def test_with_a_valid_token_the_error_is_the_views_own(pair: TokenPair, error: Any) -> None:
    assert _refused(pair.access, View.as_view(error=error)) == (error.status, error.code)


def test_without_a_token_nothing_is_read(pair: TokenPair) -> None:
    with CaptureQueriesContext(connection) as statements:
        assert _refused("")[1] == "not-authenticated"
    assert len(statements) == 0
