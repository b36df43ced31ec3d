"""A sponsor on the measured stack that pays for the bench's calls."""

from lab.bench.stack import Stack

SLUG = "bench"
# Every limit is set, so that every counter is kept, and none is reached. Targets are set, so that payloads are opened.
_OPEN = """
from credits.services import entries
from gateway.common.fields import checksum
from sponsors.models import Policy, PolicyVersion, Sponsor
from sponsors.services.funding import open_account
most = 10**12
sponsor = Sponsor(slug="bench", name="Bench")
open_account(sponsor)
entries.adjust_sponsor(sponsor_id=sponsor.pk, credits=most, key="bench", actor=None, reason="a bench")
PolicyVersion.objects.create(
    policy=Policy.objects.create(sponsor=sponsor, name="all"), number=1, call_credits=most, user_day_credits=most,
    user_credits=most, user_calls=most, window_seconds=3600, window_credits=most, campaign_credits=most,
    targets=[{"contract": checksum(f"0x{number:040x}"), "functions": []} for number in range(4096, 4160)],
)
"""


def open_sponsor(stack: Stack) -> str:
    """Open the sponsor with a policy that has every limit; return its name."""
    outcome = stack.manage("shell", "-c", _OPEN)
    if outcome.returncode != 0:
        raise RuntimeError(f"the sponsor was not opened: {outcome.stderr.strip()[-400:]}")
    return SLUG
