"""A banned person is refused at every door of sign-in, by a code of its own, until a colleague lifts the ban."""

import random
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone
from rest_framework.test import APIClient

from tests.fakes.profiles import Profile
from tests.staff import member
from tests.users.auth_client import Wallet, signed_in
from users.errors import AccountBanned, BanRefused
from users.models import Ban, SignInSession, User
from users.services import bans

pytestmark = pytest.mark.django_db


@pytest.fixture
def wallet(client: APIClient, profile: Profile) -> Wallet:
    return Wallet(client, profile)


def banned(user: User) -> Ban:
    return bans.ban(user=user, actor=member("support"), reason="abuse", now=timezone.now())


def test_tokens_refreshing_and_sign_in_are_refused_at_once(wallet: Wallet, profile: Profile) -> None:
    pair = signed_in(profile)
    user, other = User.objects.get(profile_address=profile.profile_address), signed_in
    banned(user)
    sessions = SignInSession.objects.count()
    for refused in (wallet.me(pair.access), wallet.refresh(pair.refresh), wallet.verify()):
        assert (refused["status"], refused["code"]) == (403, "account-banned")
    with pytest.raises(AccountBanned):
        other(profile)
    assert SignInSession.objects.count() == sessions
    assert not SignInSession.objects.active(now=timezone.now()).exists()


def test_after_the_ban_is_lifted_the_owner_signs_in_anew(wallet: Wallet, profile: Profile) -> None:
    pair = signed_in(profile)
    user = User.objects.get(profile_address=profile.profile_address)
    banned(user)
    bans.lift(user=user, actor=member("support"), now=timezone.now())
    assert wallet.me(pair.access)["code"] == "session-ended"
    assert wallet.me(wallet.verify()["access"])["address"] == profile.profile_address
    # It can happen again.
    banned(user)
    assert Ban.objects.filter(user=user).count() == 2


def test_a_ban_is_lifted_by_another_person_than_the_one_who_banned(profile: Profile) -> None:
    signed_in(profile)
    user, first = User.objects.get(profile_address=profile.profile_address), member("support")
    ban = bans.ban(user=user, actor=first, reason="abuse", now=timezone.now())
    with pytest.raises(BanRefused, match="a colleague lifts"):
        bans.lift(user=user, actor=first, now=timezone.now())
    with pytest.raises(IntegrityError), transaction.atomic():
        Ban.objects.update(lifted_at=timezone.now() + timedelta(1), lifted_by=first)
    ban.refresh_from_db()
    user.refresh_from_db()
    assert (ban.lifted_at, user.is_active) == (None, False)


def test_staff_closed_accounts_and_the_banned_cannot_be_banned(profile: Profile) -> None:
    signed_in(profile)
    user = User.objects.get(profile_address=profile.profile_address)
    banned(user)
    for person in (user, member(random.choice(["support", "finance"]))):
        with pytest.raises(BanRefused):
            banned(person)
    with pytest.raises(BanRefused, match="not banned"):
        bans.lift(user=member("finance"), actor=member("support"), now=timezone.now())
    assert Ban.objects.count() == 1
