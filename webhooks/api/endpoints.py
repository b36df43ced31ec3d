"""GET and POST /api/sponsors/{name}/webhooks, and DELETE, POST secret and POST test of one: a sponsor's endpoints."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.common import clock
from gateway.common.errors import NotFound
from gateway.common.http import PRIVATE
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web.serializers import BodySerializer, rendered
from sponsors.api.access import FAULTS, SponsorAccess, SponsorViewSet
from webhooks.errors import EndpointDisabled, EndpointRefused, TooManyEndpoints, WebhooksNotConfigured
from webhooks.models import TO_SPONSORS, Endpoint
from webhooks.services import endpoints

ONE = r"webhooks/(?P<endpoint_id>[0-9]{1,18})"


class SponsorWebhookSerializer(serializers.Serializer[Any]):
    """An endpoint of a sponsor."""

    id = serializers.IntegerField(source="pk")
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.ChoiceField(choices=TO_SPONSORS), source="event_types")
    isEnabled = serializers.BooleanField(
        source="is_enabled",
        help_text=(
            "False after a 410, after five days of failures, or at the end of its maker's membership; delete the "
            "endpoint and create a new one."
        ),
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
        description="The response contains the signing secret, which is never shown again.",
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
            self.access.sponsor,
            url=body["url"],
            event_types=sorted(body["events"]),
            maker=self.access.maker,
        )
        return _with_secret(row, secret)

    @extend_schema(
        operation_id="deleteSponsorWebhook",
        tags=["sponsors"],
        summary="Delete a webhook endpoint of a sponsor",
        responses={200: SponsorWebhooksSerializer, **problem_responses(*FAULTS)},
    )
    @action(detail=False, methods=["delete"], url_path=ONE)
    def delete_webhook(self, request: Request, name: str, endpoint_id: str) -> Response:
        endpoints.delete_of_sponsor(endpoint_of(self.access, endpoint_id), now=clock.now())
        return self._webhooks()

    @extend_schema(
        operation_id="rotateSponsorWebhookSecret",
        tags=["sponsors"],
        summary="Give a webhook endpoint of a sponsor a new secret",
        description="The secret before signs too, until there is another new one.",
        request=None,
        responses={200: SponsorWebhookSecretSerializer, **problem_responses(*FAULTS, WebhooksNotConfigured)},
    )
    @action(detail=False, methods=["post"], url_path=f"{ONE}/secret")
    def rotate_secret(self, request: Request, name: str, endpoint_id: str) -> Response:
        row = endpoint_of(self.access, endpoint_id)
        return _with_secret(row, endpoints.rotate_secret(row))

    @extend_schema(
        operation_id="testSponsorWebhook",
        tags=["sponsors"],
        summary="Send a test to a webhook endpoint of a sponsor",
        request=None,
        responses={200: SponsorWebhookSerializer, **problem_responses(*FAULTS, EndpointDisabled)},
    )
    @action(detail=False, methods=["post"], url_path=f"{ONE}/test")
    def send_test(self, request: Request, name: str, endpoint_id: str) -> Response:
        row = endpoint_of(self.access, endpoint_id)
        endpoints.send_test(row, now=clock.now())
        return Response(SponsorWebhookSerializer(row).data, headers=PRIVATE)

    def _webhooks(self) -> Response:
        rows = Endpoint.objects.of_sponsor(self.access.sponsor).order_by("pk")
        return Response(rendered(SponsorWebhooksSerializer, {"webhooks": rows}), headers=PRIVATE)


def endpoint_of(access: SponsorAccess, endpoint_id: str) -> Endpoint:
    """
    Return an endpoint of the caller's sponsor.

    Raises:
        NotFound: the sponsor has no endpoint with this id, or has deleted it.
    """
    row = Endpoint.objects.of_sponsor(access.sponsor).filter(pk=int(endpoint_id)).first()
    if row is None:
        raise NotFound("The sponsor has no such endpoint.")
    return row


def _with_secret(row: Endpoint, secret: str) -> Response:
    body = {**SponsorWebhookSerializer(row).data, "secret": secret}
    return Response(body, headers=PRIVATE)
