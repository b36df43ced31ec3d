"""The log never blocks a caller, and the end of a process waits for its last lines."""

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from signer import logs

_LINES = 30_000
_UNREAD = f"""
import logging, logging.config, os
from gateway.common.logging import logging_settings

logging.config.dictConfig(logging_settings("INFO"))
for number in range({_LINES}):
    logging.warning("line %d %s", number, "x" * 200)
print("done", flush=True)
input()
logging.getLogger().handlers[0].flush()
logging.warning("the last line")
if os.fork() == 0:
    logging.warning("a line of a forked process")
"""
_ENDINGS = {
    "an exit": "logging.warning('the last line'); raise SystemExit(1)",
    "an uncaught error": "log_uncaught(); raise ValueError('the last line')",
    "a critical line": "logging.critical('the last line'); os._exit(1)",
    "the end of a process that was forked": """
process = multiprocessing.get_context("fork").Process(target=logging.warning, args=["the last line"])
process.start()
process.join()
""",
}


def started(program: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_log_that_is_not_read_blocks_no_caller_and_its_dropped_lines_are_counted() -> None:
    with started(_UNREAD) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        # Nothing reads standard error yet, and a pipe holds 64 KiB.
        assert process.stdout.readline() == "done\n"
        process.stdin.write("\n")
        process.stdin.flush()
        events = [json.loads(line)["event"] for line in process.stderr]

    lines = [event for event in events if event.startswith("line ")]
    dropped = sum(int(event.split()[0]) for event in events if event.endswith("log lines were dropped"))
    assert len(lines) + dropped == _LINES
    assert 0 < len(lines) < _LINES
    assert {"the last line", "a line of a forked process"} <= set(events)


@pytest.mark.parametrize("ending", _ENDINGS.values(), ids=_ENDINGS)
def test_the_last_line_is_written_at(ending: str) -> None:
    program = "import logging.config, multiprocessing, os\nfrom gateway.common.logging import *\n"
    configured = "logging.config.dictConfig(logging_settings('INFO'))\n"
    with started(program + configured + ending) as process:
        _, written = process.communicate()
    last = json.loads(written.splitlines()[-1])
    assert "the last line" in last["event"] + last.get("exception", "")


def test_a_line_that_cannot_be_formatted_is_named_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    output: Any = logs.OUTPUT
    monkeypatch.setattr(output, "put", written.append)
    handler = logs.BackgroundHandler()
    handler.setFormatter(logs.json_formatter())
    handler.emit(logging.LogRecord("some.name", 30, "", 0, "%d", ("text",), None))
    (line,) = map(json.loads, written)
    assert line["logger"] == "some.name"
    assert "TypeError" in line["exception"]
