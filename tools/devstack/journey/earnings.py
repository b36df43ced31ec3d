"""
Earnings of the journey: signed postbacks of every ad network, repeated, forged, reversed, and imported as a report.

After each of them the dashboard must show exactly its credits.
"""

import math
import secrets
import tempfile
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import urllib3

from devstack.ad_networks.signing import SIGNERS, Reward, SignedPostback, sign
from devstack.console import echo
from devstack.journey.checks import expect
from devstack.journey.dashboard import Dashboard, Manage
from devstack.wallet import Wallet

_HTTP = urllib3.PoolManager(retries=False, timeout=30)
# The response bodies that these networks document; the others read only the status.
_EXPECTED_BODIES = {"levelplay": "{event}:OK", "theoremreach": "1"}
_REPORT, _FORGED, _REVERSED, _LEVELLED = "push-report", "tapjoy", "ayet-studios", "adgem"
_FORGERY_STATUS = 403


@dataclass(frozen=True)
class PostbackResponse:
    """The response to a postback."""

    status: int
    body: str

    def __str__(self) -> str:
        return f"{self.status} {self.body!r}"


@dataclass(frozen=True)
class Network:
    """One network: its URL, its secret and its rate."""

    slug: str
    address: str
    secret: str
    kind: str
    rate: Fraction
    hold_hours: int

    def post(self, postback: Reward) -> PostbackResponse:
        """Send a signed postback; the response must be the one that the network documents."""
        response = self.send(self.signed(postback))
        expect(f"the status that {self.slug} is answered", response.status, 200)
        expected = _EXPECTED_BODIES.get(self.slug, response.body).replace("{event}", postback.external_id)
        expect(f"the text that {self.slug} is answered", response.body, expected)
        return response

    def signed(self, postback: Reward) -> SignedPostback:
        """Return the signed postback."""
        return sign(self.slug, postback, url=self.address, secret=self.secret)

    def send(self, sent: SignedPostback) -> PostbackResponse:
        """Send a request and return its response, which may be an error."""
        url = f"{self.address}/{sent.path_token}" if sent.path_token else self.address
        response = _HTTP.request("GET", f"{url}?{sent.query}" if sent.query else url, headers=sent.headers)
        return PostbackResponse(response.status, response.data.decode())


def networks_of(stack: dict[str, Any]) -> dict[str, Network]:
    """Return the networks in a stack's description, by slug."""
    return {
        slug: Network(
            slug=slug,
            address=terms["address"],
            secret=terms["secret"],
            kind=terms["kind"],
            rate=Fraction(terms["rate"]),
            hold_hours=terms["hold_hours"],
        )
        for slug, terms in stack["networks"].items()
    }


@dataclass
class Earner:
    """
    A wallet that earns at ad networks, and the last state of its dashboard.

    `postbacks` is each network's last one, `worth` the credits and experience that it gave.
    """

    wallet: Wallet
    networks: dict[str, Network]
    dashboard: Dashboard = field(init=False)
    references: dict[str, str] = field(init=False)
    postbacks: dict[str, Reward] = field(default_factory=dict)
    worth: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dashboard = Dashboard.of(self.wallet)
        networks = self.wallet.ad_networks()
        self.references = {row["network"]: row["userReference"] for row in networks}
        kinds = {row["network"]: row["kind"] for row in networks}
        expect(
            "the kinds of the networks",
            kinds,
            {slug: network.kind for slug, network in self.networks.items()},
        )
        expect("the number of user references", len(set(self.references.values())), len(self.networks))

    def earn(self, slug: str, amount: int) -> None:
        """Send a network's postback about an earning, and check the dashboard."""
        network, before = self.networks[slug], self.dashboard
        self.postbacks[slug] = Reward(
            external_id=secrets.token_hex(12),
            user=self.references[slug],
            amount=str(amount),
            at=datetime.now(UTC),
        )
        response = network.post(self.postbacks[slug])
        worth = self.check_earning(network, amount)
        outcome = f"held for {network.hold_hours} h" if network.hold_hours else f"→ {self.dashboard.credits}"
        raised = f" + {float(before.bonus(network.kind)):.2%}" if before.bonus(network.kind) else ""
        echo(f"  ✓ {slug} ({network.kind}) is answered {response}")
        echo(f"    {amount} × {float(network.rate):g}{raised} = {worth} credits, {outcome}")

    def check_earning(self, network: Network, amount: int) -> int:
        """Check that the dashboard shows an earning unless it is held; return its credits."""
        before = self.dashboard
        worth = before.worth(amount=amount, rate=network.rate, kind=network.kind)
        if network.hold_hours:
            self.check_unchanged(f"{worth} credits that are held")
            return worth
        self.worth[network.slug] = worth, before.growth(worth)
        self.check_entry(network.kind, worth, experience=before.growth(worth))
        return worth

    def reverse(self, slug: str) -> None:
        """Send the reversal of a network's last postback, and check that exactly its credits are taken back."""
        response = self.networks[slug].post(replace(self.postbacks[slug], is_reversal=True))
        worth, experience = self.worth[slug]
        self.check_entry("EARNING_REVERSAL", -worth, experience=-experience)
        echo(f"  ✓ {slug} reverses it and is answered {response}: {-worth} credits, {-experience} experience")

    def check_entry(self, source: str, credits: int, *, experience: int) -> None:
        """Read the dashboard again; it must have one more entry."""
        before, self.dashboard = self.dashboard, Dashboard.of(self.wallet)
        expected = {
            "related_user": self.wallet.profile_address,
            "credit_source": source,
            "credits_earned": credits,
            "credits_before": before.credits,
            "credits_after": before.credits + credits,
        }
        expect("the newest earning", self.dashboard.newest, expected)
        expect("the credits on the dashboard", self.dashboard.credits, before.credits + credits)
        expect("permanentExp", self.dashboard.experience, before.experience + experience)

    def check_unchanged(self, what: str) -> None:
        """Read the dashboard again; it must be unchanged."""
        expect(f"the dashboard after {what}", Dashboard.of(self.wallet).shown, self.dashboard.shown)


def earn_everywhere(earner: Earner, manage: Manage) -> None:
    """Earn at every network and by a report; a repeated and a forged postback give nothing."""
    for slug in SIGNERS:
        earner.earn(slug, _some_amount())
    _repeat_postbacks(earner)
    _send_forged_postback(earner)
    earner.reverse(_REVERSED)
    _import_report(earner, manage)


def level_up(earner: Earner) -> None:
    """Earn enough for the next permanent badge, and check its bonus on the next earning."""
    before = earner.dashboard
    if before.is_at_the_top:
        echo(f"  ✓ the top badge is reached: {before.experience} experience")
    else:
        missing = before.badge["exp_upper_bound"] - before.experience
        earner.earn(_LEVELLED, math.ceil(missing / earner.networks[_LEVELLED].rate))
        badge = earner.dashboard.badge
        expect("where the new badge begins", badge["exp_lower_bound"], before.badge["exp_upper_bound"])
        echo(f"  ✓ levelled up: {before.experience} → {earner.dashboard.experience} experience")
    for slug in (_LEVELLED, *_raised(earner)):
        expect(f"a bonus on {slug}", earner.dashboard.bonus(earner.networks[slug].kind) > 0, True)
        earner.earn(slug, 1_000 + _some_amount())


def _raised(earner: Earner) -> list[str]:
    """Return one network of each other kind with an active modifier."""
    active = {modifier["modifier_type"] for modifier in earner.dashboard.shown["modifiers"]}
    open_networks = [it for it in earner.networks.values() if it.slug in SIGNERS and not it.hold_hours]
    by_kind = {network.kind: network for network in open_networks}
    return [
        network.slug
        for kind, network in by_kind.items()
        if f"BONUS_{kind}_CREDITS" in active and kind != "OFFERWALL"
    ]


def _repeat_postbacks(earner: Earner) -> None:
    for slug, postback in earner.postbacks.items():
        earner.networks[slug].post(postback)
    earner.check_unchanged("repeated postbacks")
    echo(f"  ✓ all {len(earner.postbacks)} sent again: the same answers, nothing credited twice")


def _send_forged_postback(earner: Earner) -> None:
    """Send a postback with one byte changed after signing."""
    network = earner.networks[_FORGED]
    postback = replace(earner.postbacks[_FORGED], external_id=secrets.token_hex(12))
    sent = network.signed(postback)
    changed = sent.query.replace(f"currency={postback.amount}", f"currency={int(postback.amount) + 1}")
    response = network.send(replace(sent, query=changed))
    expect("the status that a forged postback is answered", response.status, _FORGERY_STATUS)
    earner.check_unchanged("a forged postback")
    echo(f"  ✓ one more unit than {_FORGED} signed is answered {response}")


def _import_report(earner: Earner, manage: Manage) -> None:
    network, amount = earner.networks[_REPORT], _some_amount()
    row = f"{secrets.token_hex(12)},{earner.references[_REPORT]},{amount}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.csv"
        path.write_text(f"row_id,user_reference,amount\n{row}\n")
        named = ("--actor", "operations", "--reason", "the report of the journey")
        output = manage("import_earnings", _REPORT, str(path), *named).strip()
    expect("the output of the import", output, "1 rows imported, 0 had already been imported")
    worth = earner.check_earning(network, amount)
    echo(f"  ✓ {_REPORT} ({network.kind}), a CSV file: {output}")
    echo(f"    {amount} × {float(network.rate):g} = {worth} credits, → {earner.dashboard.credits}")


def _some_amount() -> int:
    return 10 + secrets.randbelow(30)
