"""HEAD and prefetches on every GET of the API."""

import re

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from gateway.web.routers import ApiRouter
from tests.factories import UserFactory
from tests.relay.api.conftest import wallet_of

pytestmark = pytest.mark.django_db
EFFECTS = {
    "/api/user/executeCheckIn",
    "/api/payments/getSetupIntent",
    "/api/postbacks/{network}/{token}",
}


def paths() -> list[str]:
    """Return the API's paths with a GET."""
    described = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
    return sorted(path for path, operations in described["paths"].items() if "get" in operations)


@pytest.mark.parametrize("path", paths())
def test_head_responds_like_get_except_where_a_get_has_an_effect(path: str) -> None:
    client = Client(raise_request_exception=False)
    headers = {"Authorization": f"Bearer {wallet_of(UserFactory.create()).token}"}
    url = re.sub(r"\{\w+\}", "1", path)

    head = client.head(url, headers=headers)

    assert head.status_code == (405 if path in EFFECTS else client.get(url, headers=headers).status_code)


@pytest.mark.parametrize(
    "announced",
    [
        ("Sec-Purpose", "prefetch;anonymous-client-ip"),
        ("Sec-Purpose", "prefetch;prerender"),
        ("Purpose", "prefetch"),
        ("X-Purpose", "preview"),
        ("X-Moz", "prefetch"),
    ],
    ids=": ".join,
)
@pytest.mark.parametrize("path", sorted(EFFECTS))
def test_a_get_with_an_effect_is_not_prefetched(path: str, announced: tuple[str, str]) -> None:
    headers = {"Authorization": f"Bearer {wallet_of(UserFactory.create()).token}", announced[0]: announced[1]}

    response = Client().get(re.sub(r"\{\w+\}", "1", path), headers=headers)

    assert (response.status_code, response.json()["code"]) == (400, "invalid-request")


class Named(ViewSet):
    """A handler's name is a method's, so every path of the viewset would accept that method."""

    @action(detail=False, methods=["put"])
    def put(self, request: Request) -> Response:
        return Response({})


def test_a_handler_named_like_a_method_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="Named: rename the handlers put"):
        ApiRouter().register("api/named", Named, basename="named")
