"""The log never blocks a caller: its lines wait in a bounded queue."""

import json
import subprocess
import sys

_LINES = 30_000
_PROGRAM = f"""
import logging, logging.config, os
from gateway.common.logging import logging_settings

logging.config.dictConfig(logging_settings("INFO"))
for number in range({_LINES}):
    logging.warning("line %d %s", number, "x" * 200)
print("done", flush=True)
input()
(handler,) = logging.root.handlers
while handler._lines.unfinished_tasks:
    handler.flush()
logging.warning("the last line")
if os.fork() == 0:
    logging.warning("a line of a forked process")
"""


def test_a_log_that_is_not_read_blocks_no_caller_and_its_dropped_lines_are_counted() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
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
