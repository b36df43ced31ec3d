"""How a request proves who is asking."""

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request


class AccessTokenAuthentication(BaseAuthentication):
    """Reads the access token of the `Authorization` header."""

    def authenticate(self, request: Request) -> None:
        return None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"
