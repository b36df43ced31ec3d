"""GET and POST /api/user/noticeEmail: the address at which the account holder wants notices about credits."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from gateway.common import clock
from gateway.common.errors import InvalidRequest, NotAuthenticated
from gateway.common.http import PRIVATE
from gateway.common.problems import problem_responses
from gateway.web import brand
from gateway.web.serializers import BodySerializer, rendered
from gateway.web.throttling import network_rate, user_rate
from users.api.authentication import ProfileRequest
from users.models import User
from webhooks.errors import EmailUnavailable
from webhooks.models import NoticeAddress
from webhooks.services import addresses

_DESCRIPTION = """
The service sends an e-mail when the credits will last less than three days at the account holder's usual rate, when
they are used up, and when they have risen again. At most once a week it sends another about given credits that expire
in the following week. Sending the address is the consent. Until the account holder opens the link in the first e-mail,
nothing else is sent; every e-mail has a link to unsubscribe. Null deletes the address.
""".strip()


class NoticeEmailSerializer(BodySerializer):
    """The address for notices."""

    email = serializers.EmailField(
        max_length=254, allow_null=True, help_text="Null for no notices, which deletes the address."
    )


class NoticeEmailResponseSerializer(serializers.Serializer[Any]):
    """The address for notices, and whether its owner has confirmed it."""

    email = serializers.EmailField(allow_null=True)
    isConfirmed = serializers.BooleanField(help_text="Whether the link in the first e-mail was opened.")
    isAvailable = serializers.BooleanField(help_text="Whether this service sends e-mails.")


class NoticeEmailViewSet(ViewSet):
    def get_throttles(self) -> list[Any]:
        """Limit what makes an e-mail as tightly as other messages in the user's name."""
        if self.request.method == "POST":
            return [network_rate("CARD_CAPTURE_NETWORK_RATE")(), user_rate("CARD_CAPTURE_RATE")()]
        return [user_rate("DASHBOARD_RATE")()]

    @extend_schema(
        methods=["GET"],
        operation_id="getNoticeEmail",
        tags=["user"],
        summary="Get the e-mail address for notices",
        description=_DESCRIPTION,
        responses={200: NoticeEmailResponseSerializer, **problem_responses(NotAuthenticated)},
    )
    @extend_schema(
        methods=["POST"],
        operation_id="setNoticeEmail",
        tags=["user"],
        summary="Set the e-mail address for notices",
        description=_DESCRIPTION,
        request=NoticeEmailSerializer,
        responses={
            200: NoticeEmailResponseSerializer,
            **problem_responses(NotAuthenticated, InvalidRequest, EmailUnavailable),
        },
    )
    @action(detail=False, methods=["get", "post"], url_path="noticeEmail")
    def notice_email(self, request: ProfileRequest) -> Response:
        if request.method == "POST":
            _set(request, NoticeEmailSerializer.read(request.data)["email"])
        return Response(_body(request.user), headers=PRIVATE)


def _set(request: ProfileRequest, email: str | None) -> None:
    if email is None:
        addresses.remove(user=request.user)
        return
    language = brand.language_of(request._request)
    addresses.give(user=request.user, email=email, language=language, now=clock.now())


def _body(user: User) -> dict[str, Any]:
    address = NoticeAddress.objects.filter(user=user).first()
    body = {
        "email": address.email if address else None,
        "isConfirmed": bool(address and address.confirmed_at),
        "isAvailable": bool(settings.EMAIL_HOST),
    }
    return rendered(NoticeEmailResponseSerializer, body)
