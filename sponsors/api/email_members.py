"""
Members without a profile.

POST /api/sponsors/{name}/invitations: invite the owner of an e-mail address, or invite a member again.
POST /api/members/accept: choose a password, with the link of the e-mail and the code of the owner.
POST /api/members/signIn and DELETE /api/members/session: begin and end a session.
"""

from typing import Any

import segno
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from gateway.common import clock
from gateway.common.errors import TooManyRequests
from gateway.common.http import PRIVATE
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web import brand
from gateway.web.serializers import BodySerializer, rendered
from gateway.web.throttling import network_rate, user_rate
from sponsors.api.access import FAULTS, IsSignedInMember, MemberAuthentication, SponsorViewSet
from sponsors.errors import InvitationClosed, LastOwner, MailFailed, MailUnavailable, SignInRefused
from sponsors.models import Member
from sponsors.rules.rights import Right
from sponsors.services import email_members
from users.api.serializers import LogoutResponseSerializer

_PUBLIC: dict[str, Any] = {
    "authentication_classes": (),
    "permission_classes": (AllowAny,),
    "throttle_classes": (network_rate("AUTH_VERIFY_RATE"),),
}
_EMAIL = "ada@example.org"


def _email() -> serializers.EmailField:
    return serializers.EmailField(max_length=254)


class InvitationRequestSerializer(BodySerializer):
    email = _email()
    role = serializers.ChoiceField(choices=Member.Role.choices)


class InvitationSerializer(serializers.Serializer[Any]):
    """An invitation."""

    code = serializers.CharField(
        help_text="Shown this once. Give it to the person by another way than e-mail."
    )


class AcceptRequestSerializer(BodySerializer):
    token = serializers.CharField(max_length=100, help_text="Of the link in the e-mail.")
    code = serializers.CharField(max_length=20, help_text="From the owner who invited.")
    password = serializers.CharField(max_length=200, trim_whitespace=False)


class AcceptedSerializer(serializers.Serializer[Any]):
    """The phone to set up. The first sign-in with its code proves it."""

    sponsor = serializers.CharField()
    email = serializers.CharField()
    key = serializers.CharField(help_text="The seed, as authenticator apps take it. Shown this once.")
    picture = serializers.CharField(help_text="A data URI of the QR code with the seed.")


class MemberSignInRequestSerializer(BodySerializer):
    sponsor = serializers.CharField(max_length=40, help_text="The sponsor's name.")
    email = _email()
    password = serializers.CharField(max_length=200, trim_whitespace=False)
    code = serializers.CharField(max_length=20, help_text="Six digits, from the phone.")


class MemberSessionSerializer(serializers.Serializer[Any]):
    """A session of a member without a profile."""

    token = serializers.CharField(help_text="Send it as a bearer token to the sponsor's endpoints.")
    expiresAt = serializers.DateTimeField()


class InvitationViewSet(SponsorViewSet):
    writes = Right.OWN

    @extend_schema(
        operation_id="inviteSponsorMember",
        tags=["sponsors"],
        summary="Invite a member of a sponsor by e-mail",
        description="For owners. The e-mail has a link, and the response a code; the person needs both. A member who "
        "is invited again loses password, phone and sessions at once.",
        request=InvitationRequestSerializer,
        responses={
            200: InvitationSerializer,
            **problem_responses(*BODY_ERRORS, MailUnavailable, MailFailed, LastOwner, *FAULTS),
        },
        examples=[
            OpenApiExample("Invite a viewer", value={"email": _EMAIL, "role": "viewer"}, request_only=True)
        ],
    )
    # As strict a rate limit as for other e-mails that a member causes.
    @action(
        detail=False,
        methods=["post"],
        throttle_classes=(user_rate("CARD_CAPTURE_RATE"), network_rate("CARD_CAPTURE_NETWORK_RATE")),
    )
    def invitations(self, request: Request, name: str) -> Response:
        body = InvitationRequestSerializer.read(request.data)
        invited = email_members.invite(
            sponsor=self.access.sponsor,
            email=body["email"].lower(),
            role=body["role"],
            actor=self.access.person(),
        )
        email_members.send(invited, language=brand.language_of(request._request))
        return Response({"code": invited.code}, headers=PRIVATE)


class MemberSignInViewSet(ViewSet):
    @extend_schema(
        operation_id="acceptSponsorInvitation",
        tags=["sponsors"],
        summary="Accept an invitation to a sponsor",
        auth=[],
        request=AcceptRequestSerializer,
        responses={
            200: AcceptedSerializer,
            **problem_responses(*BODY_ERRORS, InvitationClosed, TooManyRequests),
        },
    )
    @action(detail=False, methods=["post"], **_PUBLIC)
    def accept(self, request: Request) -> Response:
        body = AcceptRequestSerializer.read(request.data)
        try:
            validate_password(body["password"])
        except ValidationError as error:
            raise serializers.ValidationError({"password": error.messages}) from error
        member, phone = email_members.accept(**body)
        address = phone.url_for(f"{member.sponsor.slug}: {member.email}")
        result = {
            "sponsor": member.sponsor.slug,
            "email": member.email,
            "key": phone.shown_key,
            "picture": segno.make(address).svg_data_uri(scale=5, border=4, light="white"),
        }
        return Response(rendered(AcceptedSerializer, result), headers=PRIVATE)

    @extend_schema(
        operation_id="signInSponsorMember",
        tags=["sponsors"],
        summary="Sign in as a member without a profile",
        auth=[],
        request=MemberSignInRequestSerializer,
        responses={
            200: MemberSessionSerializer,
            **problem_responses(*BODY_ERRORS, SignInRefused, TooManyRequests),
        },
    )
    @action(detail=False, methods=["post"], url_path="signIn", **_PUBLIC)
    def sign_in(self, request: Request) -> Response:
        body = MemberSignInRequestSerializer.read(request.data)
        session, text = email_members.sign_in(
            request=request._request,
            sponsor=body["sponsor"],
            email=body["email"].lower(),
            password=body["password"],
            number=body["code"],
            now=clock.now(),
        )
        result = {"token": text, "expiresAt": session.expires_at}
        return Response(rendered(MemberSessionSerializer, result), headers=PRIVATE)

    @extend_schema(
        operation_id="signOutSponsorMember",
        tags=["sponsors"],
        summary="Sign out as a member without a profile",
        request=None,
        responses={200: LogoutResponseSerializer, **problem_responses(*FAULTS)},
    )
    @action(
        detail=False,
        methods=["delete"],
        url_path="session",
        authentication_classes=(MemberAuthentication,),
        permission_classes=(IsSignedInMember,),
    )
    def session(self, request: Request) -> Response:
        session: Any = request.auth
        session.delete()
        return Response({"signedOut": True}, headers=PRIVATE)
