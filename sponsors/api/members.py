"""
Endpoints for the members of sponsors.

GET and POST /api/sponsors: the sponsors of the signed-in profile, and opening one.
GET and PUT /api/sponsors/{name}/members, DELETE /api/sponsors/{name}/members/{address}: the members of one.
PUT and DELETE /api/sponsors/{name}/members/{id}: a member, also one without a profile.
"""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from gateway.common import clock
from gateway.common.errors import NotAuthenticated, PermissionDenied, WrongChecksum
from gateway.common.http import PRIVATE
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web.serializers import AddressField, BodySerializer, rendered
from gateway.web.throttling import user_rate
from sponsors.api.access import FAULTS, IsSignedInMember, MemberAuthentication, SponsorViewSet
from sponsors.errors import (
    LastOwner,
    MemberUnknown,
    OpeningsUsed,
    SelfServiceOff,
    SponsorNameTaken,
    TooManySponsors,
)
from sponsors.models import Member
from sponsors.rules.rights import Right
from sponsors.services import members, self_service
from users.api.authentication import AccessTokenAuthentication, ProfileRequest

_ROLES = "`viewer` reads everything, `manager` also manages keys and funds, `owner` also manages members."
_PROFILE = "0x12860139DBD9E9678A08B4c8aAE062302298b05c"


class MembershipSerializer(serializers.Serializer[Any]):
    """A sponsor of the signed-in profile."""

    name = serializers.CharField(
        source="sponsor.slug", help_text="The name that calls send as `Relay-Sponsor`."
    )
    displayName = serializers.CharField(source="sponsor.name")
    role = serializers.ChoiceField(choices=Member.Role.choices, help_text=_ROLES)
    since = serializers.DateTimeField(source="created_at")


class SelfServiceSerializer(serializers.Serializer[Any]):
    """The sponsor that people open without the operator's staff."""

    isOn = serializers.BooleanField(help_text="Whether the operator allows it.")
    dayCredits = serializers.IntegerField(help_text="The budget of a new sponsor for a UTC day.")
    monthCredits = serializers.IntegerField(help_text="The budget of a new sponsor for a UTC month.")


class MembershipsSerializer(serializers.Serializer[Any]):
    sponsors = MembershipSerializer(many=True)
    selfService = SelfServiceSerializer()


class OpeningSerializer(BodySerializer):
    """A new sponsor."""

    name = serializers.RegexField(
        r"^[a-z0-9](?:[a-z0-9-]{1,38}[a-z0-9])$",
        help_text="Calls send it as `Relay-Sponsor`. It never changes: 3 to 40 small letters, digits and hyphens.",
    )
    displayName = serializers.CharField(max_length=80)


class MemberSerializer(serializers.Serializer[Any]):
    """A member of a sponsor."""

    id = serializers.IntegerField(source="pk")
    address = AddressField(source="user.profile_address", allow_null=True)
    email = serializers.EmailField(allow_null=True, help_text="Of a member without a profile.")
    isInvited = serializers.SerializerMethodField(help_text="Invited, and without a password yet.")
    role = serializers.ChoiceField(choices=Member.Role.choices, help_text=_ROLES)
    since = serializers.DateTimeField(source="created_at")

    def get_isInvited(self, row: Member) -> bool:  # noqa: N802 - REST framework's name
        return row.email is not None and not row.user.has_usable_password()


class MembersSerializer(serializers.Serializer[Any]):
    members = MemberSerializer(many=True)


class MemberRequestSerializer(BodySerializer):
    address = AddressField(help_text="The address of a profile that has signed in here before.")
    role = serializers.ChoiceField(choices=Member.Role.choices, help_text=_ROLES)


class RoleSerializer(BodySerializer):
    role = serializers.ChoiceField(choices=Member.Role.choices, help_text=_ROLES)


class MembershipViewSet(ViewSet):
    authentication_classes = (MemberAuthentication, AccessTokenAuthentication)
    permission_classes = (IsSignedInMember,)
    throttle_classes = (user_rate("DASHBOARD_RATE"),)

    @extend_schema(
        operation_id="sponsors",
        tags=["sponsors"],
        summary="List the sponsors of which you are a member",
        responses={200: MembershipsSerializer, **problem_responses(NotAuthenticated)},
        examples=[
            OpenApiExample(
                "One sponsor",
                value={
                    "sponsors": [
                        {
                            "name": "my-dapp",
                            "displayName": "My dApp",
                            "role": "owner",
                            "since": "2026-11-21T10:08:57.759Z",
                        }
                    ],
                    "selfService": {"isOn": True, "dayCredits": 5000, "monthCredits": 50_000},
                },
                response_only=True,
            )
        ],
    )
    @action(detail=False, url_path="sponsors")
    def sponsors(self, request: ProfileRequest) -> Response:
        return self._sponsors(request)

    @extend_schema(
        operation_id="openSponsor",
        tags=["sponsors"],
        summary="Open a sponsor",
        description="You become its owner. It has no credits and no policies yet, and the budget of new sponsors, "
        "within which you change its policies alone. Needs a profile.",
        request=OpeningSerializer,
        responses={
            200: MembershipsSerializer,
            **problem_responses(
                *(*BODY_ERRORS, NotAuthenticated, PermissionDenied),
                *(SelfServiceOff, TooManySponsors, OpeningsUsed, SponsorNameTaken),
            ),
        },
        examples=[
            OpenApiExample(
                "A sponsor", value={"name": "my-dapp", "displayName": "My dApp"}, request_only=True
            )
        ],
    )
    @sponsors.mapping.post
    def open(self, request: ProfileRequest) -> Response:
        if request.user.profile_address is None:
            raise PermissionDenied("Only the owner of a profile can open a sponsor.")
        body = OpeningSerializer.read(request.data)
        self_service.open_sponsor(
            user=request.user, slug=body["name"], name=body["displayName"], now=clock.now()
        )
        return self._sponsors(request)

    def _sponsors(self, request: ProfileRequest) -> Response:
        rows = Member.objects.filter(user=request.user).select_related("sponsor").order_by("sponsor__slug")
        offer = {
            "isOn": settings.SPONSOR_SELF_SERVICE,
            "dayCredits": settings.SPONSOR_SELF_SERVICE_DAY_CREDITS,
            "monthCredits": settings.SPONSOR_SELF_SERVICE_MONTH_CREDITS,
        }
        body = {"sponsors": rows, "selfService": offer}
        return Response(rendered(MembershipsSerializer, body), headers=PRIVATE)


class MemberViewSet(SponsorViewSet):
    writes = Right.OWN

    @extend_schema(
        operation_id="sponsorMembers",
        tags=["sponsors"],
        summary="List the members of a sponsor",
        responses={200: MembersSerializer, **problem_responses(*FAULTS)},
    )
    @action(detail=False, url_path="members")
    def members(self, request: Request, name: str) -> Response:
        return self._members()

    @extend_schema(
        operation_id="putSponsorMember",
        tags=["sponsors"],
        summary="Add a member of a sponsor, or change a member's role",
        description="For owners. The person must have signed in here before.",
        request=MemberRequestSerializer,
        responses={
            200: MembersSerializer,
            **problem_responses(*BODY_ERRORS, WrongChecksum, MemberUnknown, LastOwner, *FAULTS),
        },
        examples=[
            OpenApiExample("Add a viewer", value={"address": _PROFILE, "role": "viewer"}, request_only=True)
        ],
    )
    @members.mapping.put
    def put_member(self, request: Request, name: str) -> Response:
        body = MemberRequestSerializer.read(request.data)
        members.put(
            sponsor=self.access.sponsor,
            profile_address=body["address"],
            role=body["role"],
            actor=self.access.person(),
        )
        return self._members()

    @extend_schema(
        operation_id="removeSponsorMember",
        tags=["sponsors"],
        summary="End a membership",
        description="Owners can remove every member; all members can remove themselves. It takes effect at once.",
        request=None,
        responses={
            200: MembersSerializer,
            **problem_responses(WrongChecksum, MemberUnknown, LastOwner, *FAULTS),
        },
    )
    @action(
        detail=False,
        methods=["delete"],
        url_path="members/(?P<address>0x[0-9a-fA-F]{40})",
        writes=Right.READ,
    )
    def remove(self, request: Request, name: str, address: str) -> Response:
        profile_address = AddressField().run_validation(address)
        user = self.access.user
        if user is None or profile_address != user.profile_address:
            self.access.require(Right.OWN)
        member = members.of_address(self.access.sponsor, profile_address)
        members.remove(member=member, actor=self.access.person())
        return self._members()

    @extend_schema(
        operation_id="changeSponsorMember",
        tags=["sponsors"],
        summary="Change the role of a member",
        description="For owners. It takes effect at once.",
        request=RoleSerializer,
        responses={
            200: MembersSerializer,
            **problem_responses(*BODY_ERRORS, MemberUnknown, LastOwner, *FAULTS),
        },
    )
    @action(detail=False, methods=["put"], url_path="members/(?P<number>[0-9]{1,18})")
    def change(self, request: Request, name: str, number: str) -> Response:
        member = members.of_number(self.access.sponsor, int(number))
        role = RoleSerializer.read(request.data)["role"]
        members.change_role(member=member, role=role, actor=self.access.person())
        return self._members()

    @extend_schema(
        operation_id="removeSponsorMemberById",
        tags=["sponsors"],
        summary="End a membership, also of a member without a profile",
        description="As by address. The sessions of a member without a profile end at once.",
        request=None,
        responses={200: MembersSerializer, **problem_responses(MemberUnknown, LastOwner, *FAULTS)},
    )
    @change.mapping.delete
    def remove_by_id(self, request: Request, name: str, number: str) -> Response:
        member = members.of_number(self.access.sponsor, int(number))
        members.remove(member=member, actor=self.access.person())
        return self._members()

    def _members(self) -> Response:
        rows = Member.objects.filter(sponsor=self.access.sponsor).select_related("user").order_by("pk")
        return Response(rendered(MembersSerializer, {"members": rows}), headers=PRIVATE)
