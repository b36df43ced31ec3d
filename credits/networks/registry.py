"""Every network that we know."""

from credits.networks.adgem import AdGem
from credits.networks.admob import AdMob
from credits.networks.ayet_studios import AyetStudios
from credits.networks.bitlabs import BitLabs
from credits.networks.contract import Adapter
from credits.networks.cpx_research import CpxResearch
from credits.networks.levelplay import LevelPlay
from credits.networks.push_report import PushReport
from credits.networks.tapjoy import Tapjoy
from credits.networks.theoremreach import TheoremReach
from credits.networks.visit_link import VisitLink

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
