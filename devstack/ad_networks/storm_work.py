"""The Django side of a storm: `prepare FOLDER COUNT PARTS PEOPLE`, `send FOLDER PART`, `judge FOLDER`."""

import json
import random
import secrets
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django


def prepare(folder: Path, count: str, parts: str, people: str) -> None:
    """Set the stage, sign all postbacks, and deal them out."""
    from django.utils import timezone

    from devstack.ad_networks.plan import make_plan
    from devstack.ad_networks.stage import set_stage, written
    from gateway.common.fields import checksum
    from users.services.profiles import user_of_profile

    now, rng = timezone.now(), random.Random(secrets.randbits(64))  # noqa: S311 - a storm, not a key
    addresses = [checksum("0x" + secrets.token_hex(20)) for _ in range(int(people))]
    stage = set_stage([user_of_profile(profile_address=address) for address in addresses], now=now)
    plan = make_plan(rng, count=int(count), references=stage.references, rates=stage.rates, now=now)
    wire = [written(stage, said) for said in plan.said]
    for part in range(int(parts)):
        _write(folder / f"part-{part}.json", wire[part :: int(parts)])
    _write(
        folder / "model.json", {"people": stage.people, "credits": plan.credits, "distinct": plan.distinct}
    )


def send(folder: Path, part: str) -> None:
    """Wait for the end of standard input, send a part, and write the answers down."""
    from devstack.ad_networks.sending import send as send_all

    wire = _read(folder / f"part-{part}.json")
    print("ready", flush=True)
    sys.stdin.read()
    _write(folder / f"answers-{part}.json", send_all(wire))


def judge(folder: Path) -> None:
    """Compare the records with the model."""
    from django.db.models import Sum
    from django.utils import timezone

    from credits.models import CreditAccount, CreditEntry
    from devstack.ad_networks.plan import Plan
    from devstack.ad_networks.stage import Stage, faults
    from earnings.models import Postback

    model = _read(folder / "model.json")
    stage = Stage({}, {}, {}, model["people"], [])
    plan = Plan([], model["credits"], model["distinct"])
    found = faults(stage, plan, now=timezone.now())
    answers: Counter[str] = Counter()
    for file in folder.glob("answers-*.json"):
        answers.update(_read(file))
    if set(answers) - {"200", "503"}:
        found.append(f"answers {dict(answers)}")
    judged = {
        "faults": found,
        "answers": answers,
        "rows": Postback.objects.count(),
        "entries": CreditEntry.objects.count(),
        "credits": CreditAccount.objects.aggregate(total=Sum("balance"))["total"],
        "wanted": sum(plan.credits),
    }
    _write(folder / "judged.json", judged)


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


def _read(path: Path) -> Any:
    return json.loads(path.read_text())


if __name__ == "__main__":
    django.setup()
    work: dict[str, Callable[..., None]] = {"prepare": prepare, "send": send, "judge": judge}
    work[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
