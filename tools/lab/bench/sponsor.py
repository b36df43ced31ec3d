"""Sponsors on the measured stack: for calls, for new profiles, and one whose own server stalls."""

import hashlib
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from lab.bench.stack import Stack

SLUG, STALLED, CAMPAIGN = "bench", "stalled", "campaign"
_SPONSOR = """
from credits.services import entries
from gateway.common.fields import checksum
from sponsors.models import Policy, PolicyVersion, Sponsor, Verifier
from sponsors.services import verifiers
from sponsors.services.funding import open_account
most = 10**12
sponsor = Sponsor(slug={slug!r}, name="Bench")
open_account(sponsor)
entries.adjust_sponsor(sponsor_id=sponsor.pk, credits=most, key={slug!r}, actor=None, reason="a bench")
policy = Policy.objects.create(sponsor=sponsor, name="all")
"""
# Every limit is set, so that every counter is kept, and none is reached. Targets are set, so that payloads are opened.
_PAYS = """
PolicyVersion.objects.create(
    policy=policy, number=1, call_credits=most, user_day_credits=most, user_credits=most, user_calls=most,
    window_seconds=3600, window_credits=most, campaign_credits=most,
    targets=[{"contract": checksum(f"0x{number:040x}"), "functions": []} for number in range(4096, 4100)],
)
"""
_ASKS = """
verifiers.save(Verifier(sponsor=sponsor, url={url!r}), {{}})
PolicyVersion.objects.create(policy=policy, number=1, call_credits=most, profiles="verified")
"""


_CREATES = """
from sponsors.models import ApiKey, Member, Purpose
from users.models import User
maker = User.objects.order_by("pk").first()
Member.objects.create(sponsor=sponsor, user=maker, role=Member.Role.OWNER)
PolicyVersion.objects.create(
    policy=policy, number=1, purpose=Purpose.PROFILES, call_credits=most, window_seconds=3600, window_credits=most,
    campaign_credits=most, campaign_calls={places},
)
for key_hash in {hashes!r}:
    ApiKey.objects.create(
        sponsor=sponsor, name="bench", key_hash=key_hash, hint="", scopes=["create"], created_by=maker
    )
"""


def open_campaign(stack: Stack, *, keys: int, places: int) -> list[str]:
    """Open a sponsor of at most this many new profiles, and return the API keys of its servers."""
    slug, texts = (
        f"{CAMPAIGN}-{secrets.token_hex(4)}",
        [f"sponsor_{secrets.token_hex(32)}" for _ in range(keys)],
    )
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    _run(stack, _SPONSOR.format(slug=slug) + _CREATES.format(places=places, hashes=hashes))
    return texts


def open_sponsor(stack: Stack) -> str:
    """Open the sponsor that pays, with a policy that has every limit; return its name."""
    _run(stack, _SPONSOR.format(slug=SLUG) + _PAYS)
    return SLUG


@contextmanager
def stalled_verifier(stack: Stack) -> Iterator[None]:
    """Open the sponsor STALLED, whose server accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        _run(stack, _SPONSOR.format(slug=STALLED) + _ASKS.format(url=url))
        yield


def _run(stack: Stack, script: str) -> None:
    outcome = stack.manage("shell", "-c", script)
    if outcome.returncode != 0:
        raise RuntimeError(f"the sponsor was not opened: {outcome.stderr.strip()[-400:]}")
