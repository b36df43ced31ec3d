"""
The postbacks of ad networks and their proofs: one adapter per network, and `ADAPTERS` by slug.

An adapter parses the bytes of a request into an event, or refuses them. It uses neither the database nor the clock;
secrets and verifier keys are arguments.
"""

from earnings.networks.adgem import AdGem
from earnings.networks.admob import AdMob
from earnings.networks.ayet_studios import AyetStudios
from earnings.networks.base import Adapter
from earnings.networks.bitlabs import BitLabs
from earnings.networks.cpx_research import CpxResearch
from earnings.networks.levelplay import LevelPlay
from earnings.networks.push_report import PushReport
from earnings.networks.tapjoy import Tapjoy
from earnings.networks.theoremreach import TheoremReach
from earnings.networks.visit_link import VisitLink

_ALL: tuple[Adapter, ...] = (
    AdMob(),
    LevelPlay(),
    Tapjoy(),
    AdGem(),
    AyetStudios(),
    BitLabs(),
    CpxResearch(),
    TheoremReach(),
    VisitLink(),
    PushReport(),
)
ADAPTERS: dict[str, Adapter] = {adapter.slug: adapter for adapter in _ALL}
