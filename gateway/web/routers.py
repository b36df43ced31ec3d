"""The router of the API's viewsets."""

from rest_framework.routers import SimpleRouter


class ApiRouter(SimpleRouter):
    """
    REST framework's router, whose paths work with and without a trailing slash.

    Register a viewset under the fixed part of its paths and name the rest in each action:

        router = ApiRouter()
        router.register("api/relay", RelayViewSet, basename="relay")

        @action(detail=False, methods=["post"], url_path="transactionStatus")

    Prefix and `url_path` are regular expressions with optional named groups. Use `@name.mapping.post` to document the
    methods of an action separately.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trailing_slash = "/?"
