"""A round of all ad networks: told, told again, forged, taken back, imported; and what a better badge adds."""

import math
import secrets
import tempfile
from dataclasses import replace
from pathlib import Path

from devstack.ad_networks.signing import SIGNERS
from devstack.console import say
from devstack.journey.checks import expect
from devstack.journey.earner import Earner
from devstack.journey.standing import Manage

_REPORT, _FORGED, _REVERSED, _LEVELLED = "push-report", "tapjoy", "ayet-studios", "adgem"
_FORGERY_STATUS = 403


def earn_everywhere(earner: Earner, manage: Manage) -> None:
    """Earn at every network in its own dialect, and by a report; only what is true and new counts."""
    for slug in SIGNERS:
        earner.earn(slug, _some_amount())
    _repeat(earner)
    _forge(earner)
    earner.lose(_REVERSED)
    _import_report(earner, manage)


def level_up(earner: Earner) -> None:
    """Earn what the next permanent badge asks for, and see its bonus on the earning after that."""
    before = earner.standing
    if before.is_at_the_top:
        say(f"  ✓ the top badge is worn: {before.experience} experience")
    else:
        missing = before.badge["exp_upper_bound"] - before.experience
        earner.earn(_LEVELLED, math.ceil(missing / earner.networks[_LEVELLED].rate))
        worn = earner.standing.badge
        expect("where the new badge begins", worn["exp_lower_bound"], before.badge["exp_upper_bound"])
        say(f"  ✓ levelled up: {before.experience} → {earner.standing.experience} experience")
    for slug in (_LEVELLED, *_raised(earner)):
        expect(f"a bonus on {slug}", earner.standing.bonus(earner.networks[slug].kind) > 0, True)
        earner.earn(slug, 1_000 + _some_amount())


def _raised(earner: Earner) -> list[str]:
    """Return a network of each other kind that a modifier raises now."""
    active = {modifier["modifier_type"] for modifier in earner.standing.shown["modifiers"]}
    by_kind = {it.kind: it for it in earner.networks.values() if it.slug in SIGNERS and not it.hold_hours}
    return [
        it.slug for kind, it in by_kind.items() if f"BONUS_{kind}_CREDITS" in active and kind != "OFFERWALL"
    ]


def _repeat(earner: Earner) -> None:
    for slug, told in earner.told.items():
        earner.networks[slug].tell(told)
    earner.find_unchanged("repeated postbacks")
    say(f"  ✓ all {len(earner.told)} told again: the same answers, nothing credited twice")


def _forge(earner: Earner) -> None:
    """Send a postback of which one byte was changed on the way."""
    network, told = earner.networks[_FORGED], replace(earner.told[_FORGED], external_id=secrets.token_hex(12))
    sent = network.signed(told)
    changed = sent.query.replace(f"currency={told.amount}", f"currency={int(told.amount) + 1}")
    answer = network.send(replace(sent, query=changed))
    expect("the status that a forged postback is answered", answer.status, _FORGERY_STATUS)
    earner.find_unchanged("a forged postback")
    say(f"  ✓ one more unit than {_FORGED} signed is answered {answer}")


def _import_report(earner: Earner, manage: Manage) -> None:
    network, amount = earner.networks[_REPORT], _some_amount()
    row = f"{secrets.token_hex(12)},{earner.references[_REPORT]},{amount}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.csv"
        path.write_text(f"row_id,user_reference,amount\n{row}\n")
        said = manage("import_earnings", _REPORT, str(path)).strip()
    expect("what the import says", said, "1 rows imported, 0 had been imported before")
    worth = earner.find_earned(network, amount)
    say(f"  ✓ {_REPORT} ({network.kind}), a CSV file: {said}")
    say(f"    {amount} × {float(network.rate):g} = {worth} credits, → {earner.standing.credits}")


def _some_amount() -> int:
    return 10 + secrets.randbelow(30)
