"""The way to the controls."""

import json
from typing import Any

import urllib3

Thing = dict[str, Any]
_SECONDS = 600


class ControlRefused(RuntimeError):
    """The double does not do what it was asked; the message says why."""


class Channel:
    """Speaks to the controls of one running double."""

    def __init__(self, url: str, secret_key: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {secret_key}", "Content-Type": "application/json"}

    def _tell(self, name: str, **body: Any) -> Thing:
        return self._ask("POST", name, body)

    def _ask(self, method: str, name: str, body: Thing | None = None) -> Thing:
        content = None if body is None else json.dumps(body)
        response = urllib3.request(
            method,
            f"{self._url}/_control/{name}",
            body=content,
            headers=self._headers,
            timeout=_SECONDS,
            retries=False,
        )
        answer: Thing = response.json()
        if response.status != 200:
            raise ControlRefused(answer["error"]["message"])
        return answer
