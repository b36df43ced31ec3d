"""The service's HTTP API, as a caller outside the project would write it down."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import urllib3


class Refused(RuntimeError):
    """The service answered with a problem document, or with something it should never answer."""

    def __init__(self, status: int, content_type: str, problem: dict[str, Any]) -> None:
        super().__init__(f"{status} {problem.get('code')}: {problem.get('detail')}")
        self.status = status
        self.content_type = content_type
        self.problem = problem


@dataclass
class GatewayApi:
    """
    A client of one service; after `sign_in` of a wallet it carries the access token.

    Every method returns the answer's object and raises `Refused` where the status is not 200.
    """

    base_url: str
    token: str | None = None
    _pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(retries=False, timeout=30))

    def get(self, path: str, **headers: str) -> Any:
        """Ask for what is at the path; headers by their names, with underscores."""
        return self._request("GET", path, headers=headers)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Hand in a body."""
        return self._request("POST", path, body)

    def delete(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for an end; the body says how."""
        return self._request("DELETE", path, body)

    def _request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, Any]:
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers |= {"authorization": f"Bearer {self.token}"} if self.token else {}
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(body)
        response = self._pool.request(method, self.base_url + path, body=content, headers=headers)
        content_type = response.headers.get("content-type", "")
        answer: dict[str, Any] = (
            response.json() if "json" in content_type else {"detail": response.data[:200]}
        )
        if response.status != 200:
            raise Refused(response.status, content_type, answer)
        return answer
