"""The service's HTTP API, as a caller outside the project would write it down."""

import json
from dataclasses import dataclass, field
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
    """A client of one service; after `sign_in` of a wallet it carries the access token."""

    base_url: str
    token: str | None = None
    _pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(retries=False, timeout=30))

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """
        Return the answer's object.

        Raises:
            Refused: the status is not 200.
        """
        headers = {"content-type": "application/json"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        response = self._pool.request("POST", self.base_url + path, body=json.dumps(body), headers=headers)
        content_type = response.headers.get("content-type", "")
        answer: dict[str, Any] = (
            response.json() if "json" in content_type else {"detail": response.data[:200]}
        )
        if response.status != 200:
            raise Refused(response.status, content_type, answer)
        return answer
