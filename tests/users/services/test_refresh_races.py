"""Twenty exchanges of one token at once: one session left, one child."""

from datetime import timedelta

import pytest
from django.utils.timezone import now

from tests.fakes.profiles import Profile
from tests.threads import at_once
from tests.users.auth_client import signed_in
from users.errors import RefreshTokenReused, SessionEnded
from users.models import RefreshToken, SignInSession
from users.services import sessions
from users.services.sessions import TokenPair

pytestmark = pytest.mark.django_db(transaction=True)


def test_concurrent_refreshes_get_the_same_child_of_the_one_active_session(profile: Profile) -> None:
    token = signed_in(profile).refresh

    outcomes = at_once([lambda: sessions.refresh(token=token, now=now())] * 20)

    pairs = [outcome for outcome in outcomes if isinstance(outcome, TokenPair)]
    assert len(pairs) == 20
    assert len({pair.refresh for pair in pairs}) == 1
    assert SignInSession.objects.active(now=now()).count() == 1
    assert RefreshToken.objects.count() == 2
    sessions.refresh(token=pairs[0].refresh, now=now())


def test_concurrent_repeats_of_a_lost_response_leave_the_session_and_its_child(profile: Profile) -> None:
    token, start = signed_in(profile).refresh, now()
    lost = sessions.refresh(token=token, now=start)

    outcomes = at_once([lambda: sessions.refresh(token=token, now=start + timedelta(seconds=12))] * 20)

    assert {outcome.refresh for outcome in outcomes if isinstance(outcome, TokenPair)} == {lost.refresh}
    assert [outcome for outcome in outcomes if not isinstance(outcome, TokenPair)] == []
    assert SignInSession.objects.active(now=now()).count() == 1
    assert RefreshToken.objects.count() == 2
    with pytest.raises(RefreshTokenReused):
        sessions.refresh(token=token, now=start + timedelta(seconds=65))
    assert not SignInSession.objects.active(now=now()).exists()


def test_concurrent_late_repeats_end_the_session_once(profile: Profile) -> None:
    token, start = signed_in(profile).refresh, now()
    sessions.refresh(token=token, now=start)

    outcomes = at_once([lambda: sessions.refresh(token=token, now=start + timedelta(seconds=601))] * 8)

    assert all(isinstance(outcome, RefreshTokenReused | SessionEnded) for outcome in outcomes)
    assert not SignInSession.objects.active(now=now()).exists()
    assert RefreshToken.objects.count() == 2
