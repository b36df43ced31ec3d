"""What the service says of itself at /metrics: whether its workers have done something since a moment."""

import re
import time
from contextlib import suppress

import urllib3

_SAMPLE = re.compile(r'^gateway_(\w+)\{(?:task|loop)="([^"]+)"\} (\S+)$', re.MULTILINE)
_PERIOD = "periodic_task_period_seconds"
_SUCCEEDED = ("periodic_task_succeeded_timestamp_seconds", "relay_loop_succeeded_timestamp_seconds")
_LONGEST_PERIOD, _POLL_SECONDS = 10, 0.5


def idle_after(
    base_url: str, token: str, *, since: float, patience_seconds: float
) -> tuple[float, list[str]]:
    """
    Wait until each loop of the relay worker, and each task that beat sends every ten seconds, has succeeded.

    Returns:
        How many seconds after `since` (unix) that was, and who has not, should the patience end first.
    """
    idle = ["everybody"]
    while idle and time.time() < since + patience_seconds:
        time.sleep(_POLL_SECONDS)
        with suppress(urllib3.exceptions.HTTPError):
            answer = urllib3.request(
                "GET",
                f"{base_url}/metrics",
                headers={"authorization": f"Bearer {token}"},
                timeout=5,
                retries=False,
            )
            if answer.status == 200:
                idle = idle_since(answer.data.decode(), since)
    return round(time.time() - since, 1), idle


def idle_since(exposition: str, since: float) -> list[str]:
    """Return who has not succeeded since then, of loops and of tasks with short periods."""
    samples = {(metric, name): float(value) for metric, name, value in _SAMPLE.findall(exposition)}
    frequent = {
        name for (metric, name), value in samples.items() if metric == _PERIOD and value <= _LONGEST_PERIOD
    }
    loops = {name for metric, name in samples if metric.startswith("relay_loop")}
    at_work = {name for (metric, name), value in samples.items() if metric in _SUCCEEDED and value > since}
    return sorted((frequent | loops) - at_work)
