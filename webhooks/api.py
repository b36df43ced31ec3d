"""
The API of e-mail notices, and of sponsors' webhook endpoints.

GET and POST /api/user/noticeEmail: the address at which the account holder wants notices about credits.
GET and POST /api/sponsors/{name}/webhooks, and DELETE, POST secret and POST test of one of them.
"""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from gateway.common import clock
from gateway.common.errors import InvalidRequest, NotAuthenticated, NotFound
from gateway.common.http import PRIVATE
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web import brand
from gateway.web.routers import ApiRouter
from gateway.web.serializers import BodySerializer, rendered
from gateway.web.throttling import network_rate, user_rate
from sponsors.api.access import FAULTS, SPONSOR_PATH, SponsorViewSet
from users.api.authentication import ProfileRequest
from users.models import User
from webhooks.errors import (
    EmailUnavailable,
    EndpointDisabled,
    EndpointRefused,
    TooManyEndpoints,
    WebhooksNotConfigured,
)
from webhooks.models import TO_SPONSORS, Endpoint, NoticeAddress
from webhooks.services import addresses, endpoints

_DESCRIPTION = """
An e-mail tells when the credits last for less than three days of the account holder's own use, when they are used up,
and when they have risen again; at most once a week another names the given credits that expire in the week after.
Sending the address is the consent; nothing else is sent before the link in a first e-mail was opened, and every e-mail
has a link that ends it. Null deletes the address.
""".strip()


class NoticeEmailSerializer(BodySerializer):
    """The address for notices."""

    email = serializers.EmailField(
        max_length=254, allow_null=True, help_text="Null for no notices, which deletes the address."
    )


class NoticeEmailAnswerSerializer(serializers.Serializer[Any]):
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
        responses={200: NoticeEmailAnswerSerializer, **problem_responses(NotAuthenticated)},
    )
    @extend_schema(
        methods=["POST"],
        operation_id="setNoticeEmail",
        tags=["user"],
        summary="Set the e-mail address for notices",
        description=_DESCRIPTION,
        request=NoticeEmailSerializer,
        responses={
            200: NoticeEmailAnswerSerializer,
            **problem_responses(NotAuthenticated, InvalidRequest, EmailUnavailable),
        },
    )
    @action(detail=False, methods=["get", "post"], url_path="noticeEmail")
    def notice_email(self, request: ProfileRequest) -> Response:
        if request.method == "POST":
            _set(request, NoticeEmailSerializer.read(request.data)["email"])
        return Response(_answer(request.user), headers=PRIVATE)


def _set(request: ProfileRequest, email: str | None) -> None:
    if email is None:
        addresses.remove(user=request.user)
        return
    language = brand.language_of(request._request)
    addresses.give(user=request.user, email=email, language=language, now=clock.now())


def _answer(user: User) -> dict[str, Any]:
    address = NoticeAddress.objects.filter(user=user).first()
    answer = {
        "email": address.email if address else None,
        "isConfirmed": bool(address and address.confirmed_at),
        "isAvailable": bool(settings.EMAIL_HOST),
    }
    return rendered(NoticeEmailAnswerSerializer, answer)


class SponsorWebhookSerializer(serializers.Serializer[Any]):
    """An endpoint of a sponsor."""

    id = serializers.IntegerField(source="pk")
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.ChoiceField(choices=TO_SPONSORS), source="event_types")
    isEnabled = serializers.BooleanField(
        source="is_enabled", help_text="False after a 410, or after five days of failures; create it anew."
    )


class SponsorWebhooksSerializer(serializers.Serializer[Any]):
    """The endpoints of a sponsor."""

    webhooks = SponsorWebhookSerializer(many=True)


class SponsorWebhookSecretSerializer(SponsorWebhookSerializer):
    """An endpoint of a sponsor with its secret, which is shown only once."""

    secret = serializers.CharField(help_text="It signs every message.")


class SponsorWebhookRequestSerializer(BodySerializer):
    """A new endpoint."""

    url = serializers.URLField(max_length=2000, help_text="A public https address.")
    events = serializers.MultipleChoiceField(choices=TO_SPONSORS, allow_empty=False)


class SponsorWebhookViewSet(SponsorViewSet):
    @extend_schema(
        operation_id="sponsorWebhooks",
        tags=["sponsors"],
        summary="List the webhook endpoints of a sponsor",
        responses={200: SponsorWebhooksSerializer, **problem_responses(*FAULTS)},
    )
    @action(detail=False, url_path="webhooks")
    def webhooks(self, request: Request, name: str) -> Response:
        return self._webhooks()

    @extend_schema(
        operation_id="createSponsorWebhook",
        tags=["sponsors"],
        summary="Create a webhook endpoint of a sponsor",
        description="The answer has the secret, which is never shown again.",
        request=SponsorWebhookRequestSerializer,
        responses={
            200: SponsorWebhookSecretSerializer,
            **problem_responses(
                *BODY_ERRORS, *FAULTS, EndpointRefused, TooManyEndpoints, WebhooksNotConfigured
            ),
        },
    )
    @webhooks.mapping.post
    def create_webhook(self, request: Request, name: str) -> Response:
        body = SponsorWebhookRequestSerializer.read(request.data)
        row, secret = endpoints.create_for_sponsor(
            self.access.sponsor, url=body["url"], event_types=sorted(body["events"])
        )
        return _with_secret(row, secret)

    @extend_schema(
        operation_id="deleteSponsorWebhook",
        tags=["sponsors"],
        summary="Delete a webhook endpoint of a sponsor",
        responses={200: SponsorWebhooksSerializer, **problem_responses(*FAULTS)},
    )
    @action(detail=False, methods=["delete"], url_path=r"webhooks/(?P<endpoint_id>[0-9]{1,18})")
    def delete_webhook(self, request: Request, name: str, endpoint_id: str) -> Response:
        endpoints.delete_of_sponsor(self._endpoint(endpoint_id), now=clock.now())
        return self._webhooks()

    @extend_schema(
        operation_id="rotateSponsorWebhookSecret",
        tags=["sponsors"],
        summary="Give a webhook endpoint of a sponsor a new secret",
        description="The secret before signs too, until there is another new one.",
        request=None,
        responses={200: SponsorWebhookSecretSerializer, **problem_responses(*FAULTS, WebhooksNotConfigured)},
    )
    @action(detail=False, methods=["post"], url_path=r"webhooks/(?P<endpoint_id>[0-9]{1,18})/secret")
    def rotate_secret(self, request: Request, name: str, endpoint_id: str) -> Response:
        row = self._endpoint(endpoint_id)
        return _with_secret(row, endpoints.rotate_secret(row))

    @extend_schema(
        operation_id="testSponsorWebhook",
        tags=["sponsors"],
        summary="Send a test to a webhook endpoint of a sponsor",
        request=None,
        responses={200: SponsorWebhookSerializer, **problem_responses(*FAULTS, EndpointDisabled)},
    )
    @action(detail=False, methods=["post"], url_path=r"webhooks/(?P<endpoint_id>[0-9]{1,18})/test")
    def send_test(self, request: Request, name: str, endpoint_id: str) -> Response:
        row = self._endpoint(endpoint_id)
        endpoints.send_test(row, now=clock.now())
        return Response(SponsorWebhookSerializer(row).data, headers=PRIVATE)

    def _webhooks(self) -> Response:
        rows = Endpoint.objects.of_sponsor(self.access.sponsor).order_by("pk")
        return Response(rendered(SponsorWebhooksSerializer, {"webhooks": rows}), headers=PRIVATE)

    def _endpoint(self, endpoint_id: str) -> Endpoint:
        row = Endpoint.objects.of_sponsor(self.access.sponsor).filter(pk=int(endpoint_id)).first()
        if row is None:
            raise NotFound("The sponsor has no such endpoint.")
        return row


def _with_secret(row: Endpoint, secret: str) -> Response:
    answer = {**SponsorWebhookSerializer(row).data, "secret": secret}
    return Response(answer, headers=PRIVATE)


router = ApiRouter()
router.register("api/user", NoticeEmailViewSet, basename="notice-email")
router.register(SPONSOR_PATH, SponsorWebhookViewSet, basename="sponsor-webhooks")
urlpatterns = router.urls
