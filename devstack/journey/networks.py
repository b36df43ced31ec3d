"""The ad networks' side: they sign what they tell in their own dialects and read what is answered."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import urllib3

from devstack.ad_networks.signing import Reward, SignedPostback, sign
from devstack.journey.checks import expect

_HTTP = urllib3.PoolManager(retries=False, timeout=30)
# What the networks document that they want to hear; the others read the status alone.
_WANTED = {"levelplay": "{event}:OK", "theoremreach": "1"}


@dataclass(frozen=True)
class Acknowledgement:
    """What a network was answered."""

    status: int
    body: str

    def __str__(self) -> str:
        return f"{self.status} {self.body!r}"


@dataclass(frozen=True)
class Network:
    """One network: where it sends, what it signs with, and what its unit is worth."""

    slug: str
    address: str
    secret: str
    kind: str
    rate: Fraction
    hold_hours: int

    def tell(self, told: Reward) -> Acknowledgement:
        """Send a signed postback; the answer must be the one that the network wants to hear."""
        answer = self.send(self.signed(told))
        expect(f"the status that {self.slug} is answered", answer.status, 200)
        wanted = _WANTED.get(self.slug, answer.body).replace("{event}", told.external_id)
        expect(f"the text that {self.slug} is answered", answer.body, wanted)
        return answer

    def signed(self, told: Reward) -> SignedPostback:
        """Return the postback as it is sent."""
        return sign(self.slug, told, url=self.address, secret=self.secret)

    def send(self, sent: SignedPostback) -> Acknowledgement:
        """Send something, whatever the answer."""
        url = f"{self.address}/{sent.path_token}" if sent.path_token else self.address
        response = _HTTP.request("GET", f"{url}?{sent.query}" if sent.query else url, headers=sent.headers)
        return Acknowledgement(response.status, response.data.decode())


def networks_of(stack: dict[str, Any]) -> dict[str, Network]:
    """Return the networks that a stack's description names, by slug."""
    return {
        slug: Network(
            slug=slug,
            address=known["address"],
            secret=known["secret"],
            kind=known["kind"],
            rate=Fraction(known["rate"]),
            hold_hours=known["hold_hours"],
        )
        for slug, known in stack["networks"].items()
    }
