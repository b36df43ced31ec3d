"""Somebody who watches, reads and answers; after each earning the dashboard is held against the arithmetic."""

import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from devstack.ad_networks.signing import Reward
from devstack.console import say
from devstack.journey.checks import expect
from devstack.journey.networks import Network
from devstack.journey.standing import Standing
from devstack.wallet import Wallet


@dataclass
class Earner:
    """
    A wallet and the networks that know it; `standing` is the dashboard after all so far.

    `told` is what each network told last, `given` the credits and experience that came of it.
    """

    wallet: Wallet
    networks: dict[str, Network]
    standing: Standing = field(init=False)
    references: dict[str, str] = field(init=False)
    told: dict[str, Reward] = field(default_factory=dict)
    given: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.standing = Standing.of(self.wallet)
        known = self.wallet.ad_networks()
        self.references = {it["network"]: it["userReference"] for it in known}
        kinds = {it["network"]: it["kind"] for it in known}
        expect(
            "the networks and what they reward", kinds, {it.slug: it.kind for it in self.networks.values()}
        )
        expect("how many names the user has", len(set(self.references.values())), len(self.networks))

    def earn(self, slug: str, amount: int) -> None:
        """Let a network tell of an earning, and find it on the dashboard."""
        network, before = self.networks[slug], self.standing
        self.told[slug] = Reward(
            external_id=secrets.token_hex(12),
            user=self.references[slug],
            amount=str(amount),
            at=datetime.now(UTC),
        )
        answer = network.tell(self.told[slug])
        worth = self.find_earned(network, amount)
        became = f"held for {network.hold_hours} h" if network.hold_hours else f"→ {self.standing.credits}"
        raised = f" + {float(before.bonus(network.kind)):.2%}" if before.bonus(network.kind) else ""
        say(f"  ✓ {slug} ({network.kind}) is answered {answer}")
        say(f"    {amount} × {float(network.rate):g}{raised} = {worth} credits, {became}")

    def find_earned(self, network: Network, amount: int) -> int:
        """Hold the dashboard against an earning and return its credits; none are given while they are held."""
        before = self.standing
        worth = before.worth(amount=amount, rate=network.rate, kind=network.kind)
        if network.hold_hours:
            self.find_unchanged(f"{worth} credits that are held")
            return worth
        self.given[network.slug] = worth, before.growth(worth)
        self.find_posted(network.kind, worth, experience=before.growth(worth))
        return worth

    def lose(self, slug: str) -> None:
        """Let a network reverse what it told last, and find exactly that taken back."""
        answer = self.networks[slug].tell(replace(self.told[slug], is_reversal=True))
        worth, experience = self.given[slug]
        self.find_posted("EARNING_REVERSAL", -worth, experience=-experience)
        say(f"  ✓ {slug} reverses it and is answered {answer}: {-worth} credits, {-experience} experience")

    def find_posted(self, source: str, credits: int, *, experience: int) -> None:
        """Read the dashboard again and find one entry more."""
        before, self.standing = self.standing, Standing.of(self.wallet)
        wanted = {
            "related_user": self.wallet.profile_address,
            "credit_source": source,
            "credits_earned": credits,
            "credits_before": before.credits,
            "credits_after": before.credits + credits,
        }
        expect("the newest earning", self.standing.newest, wanted)
        expect("the credits on the dashboard", self.standing.credits, before.credits + credits)
        expect("permanentExp", self.standing.experience, before.experience + experience)

    def find_unchanged(self, what: str) -> None:
        """Read the dashboard again and find it as it was."""
        expect(f"the dashboard after {what}", Standing.of(self.wallet).shown, self.standing.shown)
