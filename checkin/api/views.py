"""Check-ins over HTTP: the drop table, the check-in, and its verification."""

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from checkin import queries
from checkin.api import schema, serializers
from checkin.services import checkins, seeds
from gateway.common import clock
from gateway.common.http import PRIVATE
from gateway.web.idempotency import key_header, key_of
from gateway.web.parsers import expect_json_or_nothing
from gateway.web.routers import WITHOUT_HEAD, ApiRouter, not_prefetched
from gateway.web.throttling import user_rate
from rewards.queries import current_rewards
from users.api.authentication import ProfileRequest

_KEY_HEADER = key_header("new for every attempt; a repeat returns the same draw.")


class CheckInViewSet(ViewSet):
    """Check-ins of the signed-in profile."""

    throttle_classes = (user_rate("CHECKIN_RATE"),)

    @extend_schema(
        operation_id="checkInDrops",
        tags=["user"],
        summary="List the possible check-in drops",
        description=schema.DROPS_DESCRIPTION,
        responses={200: serializers.DropRangesSerializer, **schema.DROPS},
        examples=schema.DROPS_EXAMPLES,
    )
    @action(detail=False, url_path="checkInDrops")
    def drops(self, request: ProfileRequest) -> Response:
        now = clock.now()
        rewards = current_rewards(user=request.user, now=now)
        ranges = queries.drop_ranges(user=request.user, rewards=rewards, now=now)
        return Response(serializers.drop_ranges(ranges), headers=PRIVATE)

    @extend_schema(
        operation_id="executeCheckIn",
        tags=["user"],
        summary="Execute a check-in",
        description=schema.EXECUTE_DESCRIPTION,
        parameters=[_KEY_HEADER],
        responses={200: serializers.CheckInResultSerializer, **schema.EXECUTE},
        examples=schema.EXECUTE_EXAMPLES,
    )
    @action(detail=False, url_path="executeCheckIn", http_method_names=WITHOUT_HEAD)
    @not_prefetched
    def execute(self, request: ProfileRequest) -> Response:
        return _execute(request)

    @extend_schema(
        operation_id="executeCheckInByPost",
        tags=["user"],
        summary="Execute a check-in",
        description=schema.EXECUTE_DESCRIPTION,
        parameters=[_KEY_HEADER],
        request=None,
        responses={200: serializers.CheckInResultSerializer, **schema.EXECUTE_BY_POST},
        examples=schema.EXECUTE_EXAMPLES,
    )
    @execute.mapping.post
    def execute_by_post(self, request: ProfileRequest) -> Response:
        """The same as GET, for clients that may repeat a GET automatically."""
        expect_json_or_nothing(request)
        return _execute(request)

    @extend_schema(
        operation_id="checkInFairness",
        tags=["user"],
        summary="Read the data to verify check-ins",
        description=schema.FAIRNESS_DESCRIPTION,
        responses={200: serializers.FairnessSerializer, **schema.FAIRNESS},
        examples=schema.FAIRNESS_EXAMPLES,
    )
    @action(detail=False, url_path="checkInFairness")
    def fairness(self, request: ProfileRequest) -> Response:
        record = seeds.fairness_record_of(user=request.user, now=clock.now())
        body = serializers.fairness(
            record, profile_address=str(request.user.profile_address), how=schema.HOW_TO_RECOMPUTE
        )
        return Response(body, headers=PRIVATE)


def _execute(request: ProfileRequest) -> Response:
    check_in = checkins.execute(user=request.user, now=clock.now(), idempotency_key=key_of(request))
    return Response(serializers.check_in_result(check_in), headers=PRIVATE)


router = ApiRouter()
router.register("api/user", CheckInViewSet, basename="check-in")
urlpatterns = router.urls
