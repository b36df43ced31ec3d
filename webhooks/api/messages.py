"""GET /api/sponsors/{name}/webhooks/{id}/messages, and POST resend of one: what a sponsor's endpoint was sent."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.common import clock
from gateway.common.errors import NotFound
from gateway.common.http import PRIVATE
from gateway.common.problems import problem_responses
from gateway.web.serializers import rendered
from sponsors.api.access import FAULTS, SponsorViewSet
from webhooks.api.endpoints import ONE, endpoint_of
from webhooks.errors import EndpointDisabled
from webhooks.models import Endpoint, Message
from webhooks.queries import MOST_MESSAGES, recent_messages
from webhooks.services import messages

_MESSAGE = "(?P<message_id>msg_[0-9a-f]{32})"


class SponsorMessageSerializer(serializers.Serializer[Any]):
    """A message to an endpoint of a sponsor."""

    id = serializers.CharField(source="public_id", help_text="The `webhook-id`, the same in each attempt.")
    type = serializers.CharField(help_text="As in the message; `webhook.test` for a test.")
    status = serializers.ChoiceField(
        choices=Message.Status.choices, help_text="`given-up` after ten attempts; `waiting` until then."
    )
    attempts = serializers.IntegerField(help_text="Since it was made or sent again.")
    createdAt = serializers.DateTimeField(source="created_at")
    nextAttemptAt = serializers.SerializerMethodField(help_text="Null unless it waits.")
    responseStatus = serializers.SerializerMethodField(
        help_text="Of the last attempt; null without one, or without a response."
    )
    error = serializers.SerializerMethodField(help_text="Why the last attempt had no response; else empty.")

    def get_nextAttemptAt(self, row: Message) -> str | None:  # noqa: N802 - REST framework's name
        is_waiting = row.status == Message.Status.WAITING
        return serializers.DateTimeField().to_representation(row.next_attempt_at) if is_waiting else None

    def get_responseStatus(self, row: Any) -> int | None:  # noqa: N802 - REST framework's name
        return row.last_attempts[0].response_status if row.last_attempts else None

    def get_error(self, row: Any) -> str:
        return row.last_attempts[0].error if row.last_attempts else ""


class SponsorMessagesSerializer(serializers.Serializer[Any]):
    messages = SponsorMessageSerializer(
        many=True, help_text=f"The {MOST_MESSAGES} newest messages, newest first."
    )


class SponsorMessageViewSet(SponsorViewSet):
    @extend_schema(
        operation_id="sponsorWebhookMessages",
        tags=["sponsors"],
        summary="List the newest messages to a webhook endpoint of a sponsor",
        description="Messages are deleted after some weeks.",
        responses={200: SponsorMessagesSerializer, **problem_responses(*FAULTS)},
    )
    @action(detail=False, url_path=f"{ONE}/messages")
    def list_messages(self, request: Request, name: str, endpoint_id: str) -> Response:
        return _messages(endpoint_of(self.access, endpoint_id))

    @extend_schema(
        operation_id="resendSponsorWebhookMessage",
        tags=["sponsors"],
        summary="Send a message to a webhook endpoint of a sponsor again",
        description="With the same `webhook-id`, within seconds. A message that waits is left as it is.",
        request=None,
        responses={200: SponsorMessagesSerializer, **problem_responses(*FAULTS, EndpointDisabled)},
    )
    @action(detail=False, methods=["post"], url_path=f"{ONE}/messages/{_MESSAGE}/resend")
    def resend(self, request: Request, name: str, endpoint_id: str, message_id: str) -> Response:
        endpoint = endpoint_of(self.access, endpoint_id)
        event_id = UUID(message_id.removeprefix("msg_"))
        message = Message.objects.filter(endpoint=endpoint, event_id=event_id).first()
        if message is None:
            raise NotFound("The endpoint has no such message.")
        messages.resend(message, now=clock.now())
        return _messages(endpoint)


def _messages(endpoint: Endpoint) -> Response:
    rows = recent_messages(endpoint)
    return Response(rendered(SponsorMessagesSerializer, {"messages": rows}), headers=PRIVATE)
