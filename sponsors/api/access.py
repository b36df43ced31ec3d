"""
Who may use a sponsor's endpoints, `/api/sponsors/{name}/…`.

    class PurchaseViewSet(SponsorViewSet):
        @action(detail=False, methods=["post"], url_path="purchases", writes=Right.MANAGE)
        def purchases(self, request: Request, name: str) -> Response:
            purchases.start(sponsor=self.access.sponsor, user=self.access.payer(), …)

    router.register(SPONSOR_PATH, PurchaseViewSet, basename="sponsor-purchases")

Without `reads` and `writes`, GET needs `Right.READ`, and every other method `Right.MANAGE`. A member sends an access
token, a member without a profile a session token, and a server an API key.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.viewsets import ViewSet

from gateway.common import clock
from gateway.common.errors import NotAuthenticated, NotFound, PermissionDenied
from gateway.common.http import client_ip
from gateway.web.throttling import user_rate
from sponsors.errors import KeyNetworkRefused, KeyRefused, MemberSessionEnded
from sponsors.models import Member, MemberSession, Sponsor
from sponsors.rules.rights import Right, rights_of
from sponsors.services import email_members, keys
from sponsors.services.keys import UsedKey
from users.api.authentication import AccessTokenAuthentication, IsProfileOwner
from users.models import User

# The prefix under which viewsets are registered; their handlers take the sponsor's `name`.
SPONSOR_PATH = r"api/sponsors/(?P<name>[-a-zA-Z0-9_]{1,40})"
# Errors of every endpoint.
FAULTS = (NotAuthenticated, NotFound, PermissionDenied, KeyRefused, KeyNetworkRefused, MemberSessionEnded)


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The server that uses an API key; it takes the place of `request.user`, and throttles count by its `pk`."""

    pk: str
    is_authenticated: ClassVar[bool] = True


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer sponsor_…`. Sets `request.auth` to the `UsedKey`."""

    def authenticate(self, request: Request) -> tuple[KeyHolder, UsedKey] | None:
        """
        Return the holder and the key; None if the request has another kind of token.

        Raises:
            KeyRefused, KeyNetworkRefused: the key is not valid, or not accepted from this address.
        """
        parts = request.headers.get("Authorization", "").split()
        if not parts or not parts[-1].startswith(keys.PREFIX):
            return None
        key = keys.used(text=parts[-1], address=client_ip(request), now=clock.now())
        return KeyHolder(f"sponsor-key-{key.row.pk}"), key

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = KeyAuthentication
    name = "sponsorKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key of a sponsor, `sponsor_…`, as `Authorization: Bearer <key>`.",
        }


class MemberAuthentication(BaseAuthentication):
    """`Authorization: Bearer member_…`. Sets `request.auth` to the `MemberSession`."""

    def authenticate(self, request: Request) -> tuple[User, MemberSession] | None:
        """
        Return the member and the session; None if the request has another kind of token.

        Raises:
            MemberSessionEnded: the session has ended.
        """
        parts = request.headers.get("Authorization", "").split()
        if not parts or not parts[-1].startswith(email_members.PREFIX):
            return None
        session = email_members.session_of(parts[-1], now=clock.now())
        return session.member.user, session

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class MemberScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = MemberAuthentication
    name = "sponsorMember"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "The token of a member without a profile, `member_…`, as `Authorization: Bearer <token>`.",
        }


class IsSignedInMember(IsProfileOwner):
    """Allows the owner of a profile, and members without one."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(request.auth, MemberSession) or super().has_permission(request, view)


@dataclass(frozen=True, slots=True, kw_only=True)
class SponsorAccess:
    """A sponsor, and the caller's rights. `user` is the member; None for an API key, which `maker` has made."""

    sponsor: Sponsor
    user: User | None
    maker: User | None
    rights: frozenset[Right]

    def require(self, right: Right) -> None:
        """
        Refuse a caller without the right.

        Raises:
            PermissionDenied: neither the member's role nor the key has the right.
        """
        if right not in self.rights:
            raise PermissionDenied(f"This needs the right to {right}.", needs=right)

    def person(self) -> User:
        """
        Return the member who sent the request.

        Raises:
            PermissionDenied: the request was sent with an API key.
        """
        if self.user is None:
            raise PermissionDenied("Only a member can do this, not an API key.")
        return self.user

    def payer(self) -> User:
        """
        Return the member who sent the request and has a profile, whose card can pay.

        Raises:
            PermissionDenied: the request was sent with an API key, or by a member without a profile.
        """
        user = self.person()
        if user.profile_address is None:
            raise PermissionDenied("Only a member with a profile can do this, because its card pays.")
        return user


def access_of(request: Request, name: str) -> SponsorAccess:
    """
    Return the caller's access to the sponsor.

    Raises:
        NotAuthenticated: the caller has no profile.
        NotFound: the sponsor does not exist, the caller is not a member, or the key belongs to another sponsor.
    """
    key: Any = request.auth
    if isinstance(key, UsedKey):
        row = key.row
        if row.sponsor.slug != name:
            raise NotFound("This key belongs to no sponsor of this name.")
        return SponsorAccess(sponsor=row.sponsor, user=None, maker=row.created_by, rights=key.rights)
    if isinstance(key, MemberSession):
        member = key.member
        if member.sponsor.slug != name:
            raise NotFound("You are not a member of a sponsor of this name.")
        return _of_member(member)
    user: Any = request.user
    if user.profile_address is None:
        raise NotAuthenticated("Sign in with a Universal Profile.")
    found = (
        Member.objects.select_related("sponsor__credit_account", "user")
        .filter(sponsor__slug=name, user=user)
        .first()
    )
    if found is None:
        raise NotFound("You are not a member of a sponsor of this name.")
    return _of_member(found)


def _of_member(member: Member) -> SponsorAccess:
    rights = rights_of(member.role)
    return SponsorAccess(sponsor=member.sponsor, user=member.user, maker=member.user, rights=rights)


class HasRight(BasePermission):
    """Allows callers with the right that the view requires, and sets the view's `access`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user: Any = request.user
        if user is None:
            return False
        view.access = access_of(request, view.kwargs["name"])
        view.access.require(view.reads if request.method in SAFE_METHODS else view.writes)
        return True


class SponsorViewSet(ViewSet):
    """Endpoints of one sponsor."""

    authentication_classes = (KeyAuthentication, MemberAuthentication, AccessTokenAuthentication)
    permission_classes = (HasRight,)
    throttle_classes = (user_rate("DASHBOARD_RATE"),)
    reads: ClassVar[Right] = Right.READ
    writes: ClassVar[Right] = Right.MANAGE
    access: SponsorAccess
