"""Members without a profile: invited by e-mail, signed in with password and code, and out at once when removed."""

import re
import secrets
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone
from django_otp.oath import totp

from credits.models import CreditAccount
from sponsors.models import Member, MemberSession, Sponsor
from tests.relay.api.conftest import ApiResponse, Wallet
from tests.sponsors.api.callers import call, member_of
from tests.sponsors.sponsorships import make_sponsor
from users.models import Invitation, Phone, User
from users.services import second_factors

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _mails(settings: Any) -> None:
    settings.EMAIL_HOST = "mail.example.org"


@pytest.fixture
def sponsor() -> Sponsor:
    return make_sponsor()


@pytest.fixture
def owner(sponsor: Sponsor) -> User:
    return member_of(sponsor)


class Invitee:
    """A person with a mailbox, a password and a phone."""

    def __init__(self, sponsor: Sponsor) -> None:
        self.sponsor = sponsor
        self.email = f"p{secrets.token_hex(4)}@example.org"
        self.password = secrets.token_urlsafe(12)
        self.token = ""
        # Rates are counted by network.
        self.address = f"198.18.{secrets.randbelow(256)}.{secrets.randbelow(256)}"

    def is_invited(self, owner: User, role: str = "viewer") -> str:
        """Have the owner invite the person; return the code."""
        path = f"/api/sponsors/{self.sponsor.slug}/invitations"
        response = call(owner, "post", path, email=self.email.upper(), role=role)
        assert response.status == 200, response.body
        return str(response.body["code"])

    @property
    def link(self) -> str:
        """Return the token of the link in the newest e-mail."""
        newest = mail.outbox[-1]
        assert newest.to == [self.email]
        [token] = re.findall(r"/sponsor#invitation/(\S+)", str(newest.body))
        return str(token)

    def accepts(self, code: str, link: str = "", password: str = "") -> ApiResponse:
        body = {"token": link or self.link, "code": code, "password": password or self.password}
        return Wallet(None, self.address).post("/api/members/accept", body)

    def number(self, *, confirmed: bool) -> str:
        """Return the next number of the phone; a number is used once, so the clock of the phone runs on."""
        phone = Phone.objects.get(user=self.row.user, confirmed=confirmed)
        Phone.objects.filter(pk=phone.pk).update(last_step=-1)
        return f"{totp(bytes.fromhex(phone.key)):06}"

    @property
    def row(self) -> Member:
        return Member.objects.select_related("user").get(sponsor=self.sponsor, email=self.email)

    def signs_in(self, number: str, **values: Any) -> ApiResponse:
        known = {"sponsor": self.sponsor.slug, "email": self.email, "password": self.password, "code": number}
        response = Wallet(None, self.address).post("/api/members/signIn", known | values)
        self.token = response.body.get("token", self.token)
        return response

    def asks(self, method: str, path: str, **body: Any) -> ApiResponse:
        """Send a request with the session's token."""
        options: dict[str, Any] = {"data": body, "content_type": "application/json"} if body else {}
        return Wallet(self.token, self.address).send(method, path, **options)


@pytest.fixture
def invitee(sponsor: Sponsor, owner: User) -> Invitee:
    """A person who has accepted an invitation as a viewer, and signed in."""
    person = Invitee(sponsor)
    person.accepts(person.is_invited(owner))
    assert person.signs_in(person.number(confirmed=False)).status == 200
    return person


def test_an_invited_member_has_only_the_permissions_of_the_role(
    sponsor: Sponsor, owner: User, invitee: Invitee
) -> None:
    base = f"/api/sponsors/{sponsor.slug}"
    assert invitee.asks("get", f"{base}/overview").body["rights"] == ["read", "simulate"]
    assert [one["name"] for one in invitee.asks("get", "/api/sponsors").body["sponsors"]] == [sponsor.slug]
    shown = invitee.asks("get", f"{base}/members").body["members"]
    assert [(one["address"], one["email"], one["role"]) for one in shown] == [
        (owner.profile_address, None, "owner"),
        (None, invitee.email, "viewer"),
    ]
    refused = invitee.asks("post", f"{base}/keys", name="x", scopes=["read"])
    assert (refused.status, refused.body["code"]) == (403, "permission-denied")
    assert invitee.asks("get", f"/api/sponsors/{make_sponsor().slug}/overview").status == 404
    Member.objects.filter(pk=invitee.row.pk).update(role="manager")
    assert invitee.asks("post", f"{base}/keys", name="x", scopes=["read"]).status == 200
    # Of nothing but its sponsor.
    for path in ("/api/auth/me", "/api/user/home", "/api/user/account", "/api/payments/card"):
        assert invitee.asks("get", path).status == 401, path
    assert not CreditAccount.objects.filter(user=invitee.row.user).exists()


def test_what_a_card_pays_needs_a_profile(sponsor: Sponsor, invitee: Invitee) -> None:
    Member.objects.filter(pk=invitee.row.pk).update(role="owner")
    wallet = Wallet(invitee.token, invitee.address)
    key = {"Idempotency-Key": secrets.token_hex(8)}
    answer = wallet.post(f"/api/sponsors/{sponsor.slug}/purchases", {"pack": "x"}, **key)
    assert (answer.status, answer.body["code"]) == (403, "permission-denied")
    assert not CreditAccount.objects.filter(user=invitee.row.user).exists()


def test_opening_a_sponsor_needs_a_profile(invitee: Invitee) -> None:
    answer = invitee.asks("post", "/api/sponsors", name=f"s-{secrets.token_hex(6)}", displayName="x")
    assert (answer.status, answer.body["code"]) == (403, "permission-denied")
    assert Sponsor.objects.count() == 1


def test_link_and_code_are_both_needed_and_work_once(sponsor: Sponsor, owner: User) -> None:
    person = Invitee(sponsor)
    code = person.is_invited(owner)
    wrong = f"{(int(code.replace('-', '')) + 1) % 10**8:08}"
    short = person.accepts(code, password="short")
    assert (short.status, short.body["code"]) == (400, "invalid-request")
    for response in (person.accepts(wrong), person.accepts(code, link=secrets.token_urlsafe(32))):
        assert (response.status, response.body["code"]) == (403, "sponsor-invitation")
    assert Invitation.objects.get(user=person.row.user).failures == 1
    assert not person.row.user.has_usable_password()
    assert not Phone.objects.filter(user=person.row.user).exists()
    assert person.accepts(code).status == 200
    assert person.accepts(code).body["code"] == "sponsor-invitation"
    assert Client().get(f"/admin/invitation/{person.link}/").status_code == 404


def test_five_wrong_codes_or_three_days_close_the_link(sponsor: Sponsor, owner: User) -> None:
    guessed, late = Invitee(sponsor), Invitee(sponsor)
    code = guessed.is_invited(owner)
    for _ in range(5):
        assert guessed.accepts("x1").status == 403
    assert guessed.accepts(code).body["code"] == "sponsor-invitation"
    code = late.is_invited(owner)
    Invitation.objects.filter(user=late.row.user).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert late.accepts(code).body["code"] == "sponsor-invitation"


def test_a_failed_sign_in_reveals_neither_the_wrong_part_nor_known_addresses(invitee: Invitee) -> None:
    number = invitee.number(confirmed=True)
    before = MemberSession.objects.count()
    responses = [
        invitee.signs_in(number, password=secrets.token_urlsafe(12)),
        invitee.signs_in(number, email=f"x{invitee.email}"),
        invitee.signs_in(number, sponsor=make_sponsor().slug),
        invitee.signs_in("000000" if number != "000000" else "000001"),
    ]
    assert {(response.status, response.body["code"], response.body["detail"]) for response in responses} == {
        (401, "sponsor-sign-in", "The sponsor, the address, the password or the code is wrong.")
    }
    assert MemberSession.objects.count() == before


@pytest.mark.parametrize("is_known", [True, False])
def test_guesses_of_a_password_are_locked_out_for_known_and_unknown_addresses(
    invitee: Invitee, is_known: bool
) -> None:
    email = invitee.email if is_known else f"x{invitee.email}"
    statuses = [invitee.signs_in("1", email=email, password=secrets.token_hex(8)).status for _ in range(6)]
    assert statuses == [401, 401, 401, 401, 429, 429]
    assert invitee.signs_in(invitee.number(confirmed=True), email=email).status == 429


def test_a_number_of_the_phone_is_used_once(invitee: Invitee) -> None:
    number = invitee.number(confirmed=True)
    assert invitee.signs_in(number).status == 200
    assert invitee.signs_in(number).status == 401


def test_a_removed_member_loses_access_at_once_and_leaves_no_address(
    sponsor: Sponsor, owner: User, invitee: Invitee
) -> None:
    row = invitee.row
    base = f"/api/sponsors/{sponsor.slug}"
    assert call(owner, "delete", f"{base}/members/{row.pk}").status == 200
    gone = invitee.asks("get", f"{base}/overview")
    assert (gone.status, gone.body["code"]) == (401, "sponsor-session-ended")
    user = User.objects.get(pk=row.user_id)
    assert (user.is_active, user.has_usable_password(), user.email) == (False, False, "")
    assert invitee.email not in user.username
    assert not Phone.objects.filter(user=user).exists()
    assert not MemberSession.objects.exists()
    again = Invitee(sponsor)
    again.email = invitee.email
    again.accepts(again.is_invited(owner))
    assert again.signs_in(again.number(confirmed=False)).status == 200


def test_a_new_invitation_resets_password_phone_and_sessions(
    sponsor: Sponsor, owner: User, invitee: Invitee
) -> None:
    old = invitee.number(confirmed=True)
    code = invitee.is_invited(owner, "manager")
    assert invitee.asks("get", f"/api/sponsors/{sponsor.slug}/overview").status == 401
    assert invitee.signs_in(old).status == 401
    invitee.password = secrets.token_urlsafe(12)
    assert invitee.accepts(code).status == 200
    assert invitee.signs_in(old).status == 401
    Phone.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)
    assert invitee.signs_in(invitee.number(confirmed=False)).status == 200
    assert invitee.row.role == "manager"


def test_only_owners_invite_and_the_last_owner_who_can_sign_in_stays(sponsor: Sponsor, owner: User) -> None:
    manager, person = member_of(sponsor, "manager"), Invitee(sponsor)
    base = f"/api/sponsors/{sponsor.slug}"
    assert call(manager, "post", f"{base}/invitations", email=person.email, role="owner").status == 403
    assert (Member.objects.count(), len(mail.outbox)) == (2, 0)
    code = person.is_invited(owner, "owner")
    refused = call(owner, "delete", f"{base}/members/{owner.profile_address}")
    assert (refused.status, refused.body["code"]) == (409, "sponsor-last-owner")
    person.accepts(code)
    assert person.signs_in(person.number(confirmed=False)).status == 200
    assert call(owner, "delete", f"{base}/members/{owner.profile_address}").status == 200
    # Now the invited owner is the last, and cannot be shut out by an invitation.
    last = person.asks("post", f"{base}/invitations", email=person.email, role="owner")
    assert (last.status, last.body["code"]) == (409, "sponsor-last-owner")


def test_a_member_never_becomes_staff(invitee: Invitee) -> None:
    user = invitee.row.user
    for change in ({"is_staff": True}, {"is_superuser": True}, {"profile_address": "0x" + "12" * 20}):
        with pytest.raises(IntegrityError), transaction.atomic():
            User.objects.filter(pk=user.pk).update(**change)
    client = Client()
    body = {
        "username": user.username,
        "password": invitee.password,
        "otp_token": invitee.number(confirmed=True),
    }
    client.post("/admin/login/", body)
    assert "_auth_user_id" not in client.session


def test_a_session_ends_by_signing_out_and_after_twelve_hours(sponsor: Sponsor, invitee: Invitee) -> None:
    path = f"/api/sponsors/{sponsor.slug}/overview"
    MemberSession.objects.update(expires_at=timezone.now())
    assert invitee.asks("get", path).status == 401
    assert invitee.signs_in(invitee.number(confirmed=True)).status == 200
    assert invitee.asks("get", path).status == 200
    assert invitee.asks("delete", "/api/members/session").body == {"signedOut": True}
    assert invitee.asks("get", path).status == 401


def test_without_a_mail_server_invitations_are_refused(sponsor: Sponsor, owner: User, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    response = call(
        owner, "post", f"/api/sponsors/{sponsor.slug}/invitations", email="a@example.org", role="viewer"
    )
    assert (response.status, response.body["code"]) == (409, "sponsor-no-mail")
    assert (Member.objects.count(), User.objects.filter(is_member=True).count()) == (1, 0)


def test_a_sign_in_that_meets_a_new_invitation_opens_no_session(
    monkeypatch: pytest.MonkeyPatch, owner: User, invitee: Invitee
) -> None:
    proves = second_factors.proves

    def proves_and_is_invited(*args: Any, **values: Any) -> bool:
        is_right = proves(*args, **values)
        invitee.is_invited(owner)
        return is_right

    monkeypatch.setattr(second_factors, "proves", proves_and_is_invited)

    assert invitee.signs_in(invitee.number(confirmed=True)).body["code"] == "sponsor-sign-in"
    assert not MemberSession.objects.exists()
