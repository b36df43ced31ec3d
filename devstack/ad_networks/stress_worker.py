"""The Django side of the stress test: `prepare FOLDER COUNT PARTS USERS`, `send FOLDER PART`, `judge FOLDER`."""

import json
import random
import secrets
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django


def prepare(folder: Path, count: str, parts: str, users: str) -> None:
    """Set the networks up, sign all postbacks, and divide them among the senders."""
    from django.utils import timezone

    from devstack.ad_networks.stress_model import make_plan, set_up_networks, signed_request
    from gateway.common.fields import checksum
    from users.services.profiles import user_of_profile

    now, rng = timezone.now(), random.Random(secrets.randbits(64))  # noqa: S311 - no key is made of it
    addresses = [checksum("0x" + secrets.token_hex(20)) for _ in range(int(users))]
    setup = set_up_networks([user_of_profile(profile_address=address) for address in addresses], now=now)
    plan = make_plan(setup, rng, count=int(count), now=now)
    requests = [signed_request(setup, postback) for postback in plan.postbacks]
    for part in range(int(parts)):
        _write(folder / f"part-{part}.json", requests[part :: int(parts)])
    _write(folder / "model.json", {"users": setup.users, "credits": plan.credits, "distinct": plan.distinct})


def send(folder: Path, part: str) -> None:
    """Wait for the end of standard input, send a part, and write the answers to a file."""
    from devstack.ad_networks.stress_model import send as send_all

    requests = _read(folder / f"part-{part}.json")
    print("ready", flush=True)
    sys.stdin.read()
    _write(folder / f"answers-{part}.json", send_all(requests))


def judge(folder: Path) -> None:
    """Compare the database with the model."""
    from django.db.models import Sum
    from django.utils import timezone

    from credits.models import CreditAccount, CreditEntry
    from devstack.ad_networks.stress_model import Plan, differences
    from earnings.models import Postback

    model = _read(folder / "model.json")
    plan = Plan([], model["credits"], model["distinct"])
    lines = differences(model["users"], plan, now=timezone.now())
    answers: Counter[str] = Counter()
    for file in folder.glob("answers-*.json"):
        answers.update(_read(file))
    if set(answers) - {"200", "503"}:
        lines.append(f"answers {dict(answers)}")
    result = {
        "differences": lines,
        "answers": answers,
        "rows": Postback.objects.count(),
        "entries": CreditEntry.objects.count(),
        "credits": CreditAccount.objects.aggregate(total=Sum("balance"))["total"],
        "expected": sum(plan.credits),
    }
    _write(folder / "result.json", result)


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


if __name__ == "__main__":
    django.setup()
    work: dict[str, Callable[..., None]] = {"prepare": prepare, "send": send, "judge": judge}
    work[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
