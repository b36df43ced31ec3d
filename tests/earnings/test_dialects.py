"""Each network's dialect, and all that networks do with it: credited once or refused by name, and nothing is lost."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from devstack.ad_networks.signing import WITHOUT_REVERSALS, Reward
from earnings.models import Postback
from earnings.networks.base import PostbackResponse
from earnings.services import earnings, postbacks
from earnings.services.push import import_report
from tests.earnings.ad_networks import SLUGS, Network, random_id, set_up
from tests.factories import UserFactory
from tests.rewards.rows import experience_of
from tests.staff import member
from users.models import User

pytestmark = pytest.mark.django_db
_REPORT = "push-report"
_DIALECTS = [*SLUGS, _REPORT]
_REVERSING = [slug for slug in _DIALECTS if slug not in WITHOUT_REVERSALS]
every = pytest.mark.parametrize("slug", _DIALECTS)
every_reversing = pytest.mark.parametrize("slug", _REVERSING)


class Dialect:
    """A person at one network, whose earnings and reversals it reports in its own dialect."""

    def __init__(self, slug: str) -> None:
        self.network: Network = set_up(slug)
        self.user: User = UserFactory.create()
        self.id = random_id()

    def reward(self, amount: str = "100", *, back: bool = False, external_id: str = "") -> Reward:
        return self.network.reward(
            self.user, external_id=external_id or self.id, amount=amount, is_reversal=back
        )

    def send(self, reward: Reward) -> bool:
        """Report it, and return whether the network hears that it was handled."""
        if self.network.slug == _REPORT:
            amount = f"-{reward.amount}" if reward.is_reversal else reward.amount
            return self.imports(
                f"row_id,user_reference,amount\n{reward.external_id},{reward.user},{amount}\n"
            )
        return self.network.send(reward).status == 200

    def imports(self, text: str) -> bool:
        """Import a file, and return whether it has no errors."""
        actor = member("operations")
        result = import_report(slug=_REPORT, text=text, actor=actor, reason="x", now=timezone.now())
        return not result.errors

    def has(self, credits: int) -> bool:
        """Return whether the person has these credits, and their experience, once all holds are over."""
        while earnings.release_due(now=timezone.now() + timedelta(days=30)):
            pass
        assert find_differences() == []
        return balance_of(self.user).available == experience_of(self.user)[0] == credits


@every
def test_a_duplicate_is_credited_once(slug: str) -> None:
    dialect = Dialect(slug)

    assert all(dialect.send(dialect.reward()) for _ in range(3))

    assert dialect.has(100)
    assert not Postback.objects.filter(is_conflicting=True).exists()


@every_reversing
@pytest.mark.parametrize(
    ("is_before", "amount", "left"), [(True, "30", 70), (False, "30", 70), (False, "130", 0)]
)
def test_a_reversal_takes_its_amount_once_before_or_after_the_credit(
    slug: str, is_before: bool, amount: str, left: int
) -> None:
    dialect = Dialect(slug)
    credit, back = dialect.reward(), dialect.reward(amount, back=True)

    assert all(dialect.send(reward) for reward in ([back, credit] if is_before else [credit, back]) * 2)

    assert dialect.has(left)
    assert not Postback.objects.filter(is_conflicting=True).exists()


@every_reversing
def test_a_second_reversal_with_another_amount_is_a_finding(slug: str) -> None:
    dialect = Dialect(slug)

    assert all(dialect.send(dialect.reward(amount, back=back)) for amount, back in
               [("100", False), ("30", True), ("40", True)])  # fmt: skip

    assert dialect.has(70)
    assert Postback.objects.get(is_conflicting=True).kind == "REVERSAL"


@every_reversing
def test_a_reversal_under_a_new_id_is_a_finding(slug: str) -> None:
    dialect = Dialect(slug)
    dialect.send(dialect.reward())

    assert dialect.send(dialect.reward("30", back=True, external_id=random_id()))

    assert dialect.has(100)
    assert Postback.objects.get(kind="REVERSAL").state == "RECEIVED"


@every
def test_a_macro_that_was_not_replaced_is_refused_and_nothing_is_stored(slug: str) -> None:
    dialect = Dialect(slug)

    assert not any(dialect.send(dialect.reward(external_id="{transaction_id}")) for _ in range(2))

    assert dialect.has(0)
    assert not Postback.objects.exists()


@every
def test_an_amount_as_computers_print_it_is_credited(slug: str) -> None:
    dialect = Dialect(slug)

    for number, amount in enumerate(["1e2", "100.00000000000001", "99.999999999999999", "100."], 1):
        assert dialect.send(dialect.reward(amount, external_id=random_id()))
        assert dialect.has(100 * number), amount


_ODD: dict[str, Callable[[str], str]] = {
    "admob": lambda query: query.replace("Credit%20pack", "%43redit%20pack"),
    "ayet-studios": lambda query: f"&&{query}&",
    "levelplay": lambda query: f"x&&y=%FC&{query}&&",
    "tapjoy": lambda query: f"x&&y=%FC&{query}&&",
    "cpx-research": lambda query: f"x&&y=%FC&{query}&&",
    "visit-link": lambda query: f"x&&y=%FC{query}",
    "adgem": lambda query: query.replace("%20", "+"),
    "bitlabs": lambda query: f"&{query}&",
    "theoremreach": lambda query: f"&{query}&",
}


@pytest.mark.parametrize("slug", sorted(_ODD))
def test_an_oddly_encoded_address_is_credited(slug: str) -> None:
    dialect = Dialect(slug)
    request = dialect.network.request(dialect.reward())
    odd = replace(request, query=_ODD[slug](request.query.decode()).encode())
    assert odd.query != request.query

    response: PostbackResponse = postbacks.receive(slug=slug, request=odd, now=timezone.now())

    assert response.status == 200
    assert dialect.has(100)


def test_every_dialect_is_tried_oddly_encoded() -> None:
    assert {*_ODD, _REPORT} == set(_DIALECTS)


def test_an_oddly_written_report_is_credited() -> None:
    dialect = Dialect(_REPORT)
    reward = dialect.reward()

    assert dialect.imports(
        f"Ort;row_id;amount;user_reference\nMünchen;{reward.external_id};1e2;{reward.user}\n"
    )

    assert dialect.has(100)


@pytest.mark.parametrize(
    ("slug", "amount"), [*((slug, "25001") for slug in _DIALECTS), (SLUGS[0], "1337500000000")]
)
def test_beyond_a_cap_it_is_held_and_not_lost(slug: str, amount: str) -> None:
    dialect = Dialect(slug)
    if slug == _REPORT:
        # A file is approved first, up to the limits of staff.
        amount = "9001"
        dialect.network.row.per_event_cap = 9_000
        dialect.network.row.save()
    if slug == "cpx-research":
        dialect.network.row.per_event_cap = 25_000
        dialect.network.row.save()

    assert all(dialect.send(dialect.reward(amount)) for _ in range(2))

    assert dialect.has(0)
    row = Postback.objects.get()
    assert (row.state, row.hold_reason, row.available_at) == ("HELD", "EVENT_CAP", None)
    earnings.release_early(postback_id=row.pk)
    assert dialect.has(row.credits)
