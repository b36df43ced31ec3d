"""
`python -m lab imports`: the rows a second of a push network's report, in batches and one at a time.

It writes to an empty database of its own. The figure of single rows is taken before and after, and the ratio counts:
rows a second alone depend on the machine.
"""

import json
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

from devstack.files import PROJECT
from devstack.preparation import short_lived_stack

_SINGLE_ROWS = 500


def measure(*, rows: int, people: int, results: Path) -> int:
    """Measure in a process with temporary servers; return its exit status."""
    with short_lived_stack({"LOG_LEVEL": "CRITICAL"}) as (_, environment):
        command = [sys.executable, "-m", "lab.bench.imports", str(rows), str(people), str(results)]
        return subprocess.run(command, env=environment, cwd=PROJECT, check=False).returncode


def _main(rows: int, people: int, results: Path) -> int:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")
    django.setup()
    from django.utils import timezone

    from earnings.networks.push_report import PushReport
    from earnings.services import networks
    from earnings.services.postbacks import VerifiedEvent, record_all
    from earnings.services.push import ROWS_AT_ONCE
    from gateway.common.fields import checksum
    from users.services.profiles import user_of_profile

    # As many credits as this exceed no cap.
    network = networks.configure(slug=PushReport.slug, is_enabled=True, per_event_cap=10**9, daily_cap=10**12)
    users = [user_of_profile(profile_address=checksum(f"0x{secrets.token_hex(20)}")) for _ in range(people)]
    references = [networks.reference_of(user=user, network=network) for user in users]

    def events(count: int) -> list[VerifiedEvent]:
        now = timezone.now()
        return [
            VerifiedEvent(
                network=network,
                event=PushReport().parse(
                    {"row_id": secrets.token_hex(12), "user_reference": references[place], "amount": "1"}
                ),
                user=users[place],
                raw=b"",
                received_at=now,
            )
            for place in (secrets.randbelow(people) for _ in range(count))
        ]

    def rate(batch: int, count: int) -> float:
        prepared = events(count)
        began = time.perf_counter()
        for start in range(0, count, batch):
            record_all(prepared[start : start + batch])
        return count / (time.perf_counter() - began)

    rate(ROWS_AT_ONCE, ROWS_AT_ONCE)  # the first rows of a day, cold caches
    before = rate(1, _SINGLE_ROWS)
    together = rate(ROWS_AT_ONCE, rows)
    after = rate(1, _SINGLE_ROWS)
    singly = (before + after) / 2
    figures = {
        "rows": rows,
        "people": people,
        "rows_per_second": round(together),
        "single_rows_per_second": [round(before), round(after)],
        "ratio": round(together / singly, 1),
    }
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(figures, indent=2) + "\n")
    sys.stdout.write(f"{json.dumps(figures)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
