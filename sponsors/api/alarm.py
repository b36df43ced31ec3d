"""GET and PUT /api/sponsors/{name}/alarm: the credits below which a sponsor's members are notified."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.common.http import PRIVATE
from gateway.common.problems import BODY_ERRORS, problem_responses
from gateway.web.serializers import BodySerializer, StrictIntegerField
from sponsors.api.access import FAULTS, SponsorViewSet
from sponsors.services import funding

_MEANING = "Members are notified when fewer credits are left, and when they are restored. Null: no alarm."


class AlarmSerializer(serializers.Serializer[Any]):
    """The alarm of a sponsor."""

    credits = serializers.IntegerField(source="alarm_credits", allow_null=True, help_text=_MEANING)


class AlarmRequestSerializer(BodySerializer):
    """The new alarm of a sponsor."""

    credits = StrictIntegerField(min_value=1, max_value=SAFE_INTEGER_MAX, allow_null=True, help_text=_MEANING)


class AlarmViewSet(SponsorViewSet):
    @extend_schema(
        operation_id="sponsorAlarm",
        tags=["sponsors"],
        summary="Get a sponsor's alarm",
        responses={200: AlarmSerializer, **problem_responses(*FAULTS)},
    )
    @action(detail=False, url_path="alarm")
    def alarm(self, request: Request, name: str) -> Response:
        return Response(AlarmSerializer(self.access.sponsor).data, headers=PRIVATE)

    @extend_schema(
        operation_id="setSponsorAlarm",
        tags=["sponsors"],
        summary="Set a sponsor's alarm",
        description="Members are notified by e-mail, at their confirmed address, and by their wallet's webhooks.",
        request=AlarmRequestSerializer,
        responses={200: AlarmSerializer, **problem_responses(*BODY_ERRORS, *FAULTS)},
    )
    @alarm.mapping.put
    def set_alarm(self, request: Request, name: str) -> Response:
        body = AlarmRequestSerializer.read(request.data)
        funding.set_alarm(self.access.sponsor, credits=body["credits"])
        return Response(AlarmSerializer(self.access.sponsor).data, headers=PRIVATE)
