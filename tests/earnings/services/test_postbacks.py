"""A postback becomes credits once, and a refused one leaves nothing."""

import hashlib
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from credits.models import CreditEntry
from credits.queries import balance_of
from earnings.models import Postback, PostbackState
from earnings.networks import ADAPTERS
from earnings.networks.base import PostbackResponse, RawRequest
from earnings.services import networks, postbacks
from gateway.common.errors import NotFound
from rewards.models import ExperienceEntry
from tests.earnings.ad_networks import SLUGS, WEAK, new_reward, set_secret, set_up
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db
UNHELD = [slug for slug in SLUGS if slug not in WEAK]
ACCEPTED = {"levelplay": "{}:OK", "theoremreach": "1", "cpx-research": "ok"}


@pytest.mark.parametrize("slug", UNHELD)
def test_each_network_credits_its_user_and_gets_its_own_response(slug: str) -> None:
    user, network = UserFactory.create(), set_up(slug, rate=Decimal("2.5"))
    reward = network.reward(user, amount="101")

    response = network.send(reward)

    assert (response.status, response.body) == (200, ACCEPTED.get(slug, "OK").format(reward.external_id))
    assert balance_of(user).available == 252  # floor(101 × 2.5)
    row = Postback.objects.get()
    assert (row.state, row.credits) == (PostbackState.AVAILABLE, 252)
    assert (row.rate, row.amount) == (Decimal("2.5"), Decimal(101))
    assert row.entry is not None
    assert (row.entry.source, row.entry.amount) == (ADAPTERS[slug].kind, 252)
    gained = ExperienceEntry.objects.get()
    assert (gained.base, gained.amount, gained.track) == (252, 252, "PERMANENT")


@pytest.mark.parametrize("slug", UNHELD)
def test_a_repeat_gets_the_same_response_and_changes_nothing(slug: str) -> None:
    user, network = UserFactory.create(), set_up(slug)
    reward = network.reward(user)

    results = {network.send(reward) for _ in range(3)}

    assert len(results) == 1
    assert balance_of(user).available == int(reward.amount)
    assert (Postback.objects.count(), CreditEntry.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    ("slug", "answer"),
    [
        ("cpx-research", (400, "refused: the macro {transaction_id} of trans_id was not replaced")),
        ("tapjoy", (403, "refused: the macro {transaction_id} of id was not replaced")),
        ("theoremreach", (400, "0")),
    ],
)
def test_a_macro_signed_for_two_users_credits_neither_and_the_response_names_it(
    slug: str, answer: tuple[int, str], caplog: pytest.LogCaptureFixture
) -> None:
    network = set_up(slug)
    for user in UserFactory.create_batch(2):
        refusal = network.send(network.reward(user, external_id="{transaction_id}"))
        assert (refusal.status, refusal.body) == answer

    assert "the macro {transaction_id} of " in caplog.text
    assert not Postback.objects.exists()
    assert not CreditEntry.objects.exists()


REFUSED = {"tapjoy": (403, "refused"), "theoremreach": (400, "0")}


@pytest.mark.parametrize("slug", SLUGS)
def test_a_bad_signature_gets_the_networks_refusal_and_leaves_no_row(slug: str) -> None:
    network = set_up(slug)
    reward = network.reward(UserFactory.create())
    good = network.request(reward)
    changed = network.request(reward, query=good.query[:-3], path_token=good.path_token)
    if not good.query:
        changed = network.request(reward, path_token=good.path_token[:-3] + "AAA")

    response = _receive(slug, changed)

    # AdMob's last bytes are the key's id: a postback with an unknown key must be retried.
    assert (response.status, response.body) == (
        (503, "try again later") if slug == "admob" else REFUSED.get(slug, (400, "refused"))
    )
    assert not Postback.objects.exists()


@pytest.mark.parametrize("slug", [slug for slug in SLUGS if ADAPTERS[slug].needs_secret])
def test_a_postback_without_a_configured_secret_is_postponed(slug: str) -> None:
    network = set_up(slug)
    network.row.current_secret = ""
    network.row.save()

    assert network.send(network.reward(UserFactory.create())).status == 503
    assert not Postback.objects.exists()


def test_verifier_keys_that_are_a_day_old_are_not_used() -> None:
    user, network = UserFactory.create(), set_up("admob")
    tomorrow = timezone.now() + timedelta(hours=24)

    assert network.send(network.reward(user, at=tomorrow), now=tomorrow).status == 503
    assert not Postback.objects.exists()


@pytest.mark.parametrize(("slug", "age"), [("admob", timedelta(hours=2)), ("levelplay", timedelta(days=10))])
def test_a_stale_postback_is_refused_and_leaves_no_row(slug: str, age: timedelta) -> None:
    network = set_up(slug)

    assert network.send(network.reward(UserFactory.create(), at=timezone.now() - age)).status == 400
    assert not Postback.objects.exists()


def test_a_reference_of_one_network_is_unknown_at_another() -> None:
    user, tapjoy, adgem = UserFactory.create(), set_up("tapjoy"), set_up("adgem")
    assert tapjoy.reference(user) != adgem.reference(user)

    assert adgem.send(new_reward(user=tapjoy.reference(user), at=timezone.now())).status == 200
    assert Postback.objects.get().state == PostbackState.UNASSIGNED
    assert not CreditEntry.objects.exists()


@pytest.mark.parametrize("name", ["unknown", "disabled", "token", "method", "report"])
def test_every_wrong_path_gets_the_same_404(name: str) -> None:
    network = set_up("tapjoy")
    request = network.request(network.reward(UserFactory.create()))
    slug = {"unknown": "no-such-network", "report": "push-report"}.get(name, "tapjoy")
    if name == "disabled":
        networks.configure(slug="tapjoy", is_enabled=False)
    if name == "report":
        networks.configure(slug="push-report", is_enabled=True)
    if name == "token":
        request = network.request(network.reward(UserFactory.create()), path_token=network.token[:-1])
    if name == "method":
        request = network.request(network.reward(UserFactory.create()), method="POST")

    with pytest.raises(NotFound, match=r"^There is nothing at this address\.$"):
        _receive(slug, request)
    assert not Postback.objects.exists()


def test_only_listed_senders_are_accepted_if_there_is_a_list() -> None:
    user, network = (
        UserFactory.create(),
        set_up("tapjoy", allowed_addresses=["203.0.113.0/28", "2001:db8::1"]),
    )

    for sender in ("203.0.113.16", "2001:db8::2", "unknown", ""):
        assert network.send(network.reward(user), sender=sender).status == 403
    assert not Postback.objects.exists()
    for sender in ("203.0.113.15", "2001:db8:0::1"):
        assert network.send(network.reward(user), sender=sender).status == 200
    assert Postback.objects.count() == 2


def test_secrets_are_replaced_without_losing_a_postback() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    old = network.secret
    set_secret(slug="tapjoy", secret="the new one", now=timezone.now())

    for network.secret in (old, "the new one"):
        assert network.send(network.reward(user)).status == 200
    networks.retire_secret(slug="tapjoy")
    network.secret = old
    assert network.send(network.reward(user)).status == 403
    network.secret = "the new one"
    assert network.send(network.reward(user)).status == 200
    assert Postback.objects.count() == 3


def test_setting_the_same_secret_again_keeps_the_one_before_it() -> None:
    network = set_up("tapjoy")
    for _ in range(2):
        set_secret(slug="tapjoy", secret="the new one", now=timezone.now())

    network.row.refresh_from_db()
    assert networks.live_secrets(network.row) == ["the new one", network.secret]


def test_the_row_keeps_the_request_and_neither_token_nor_secret() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    request = network.request(network.reward(user), headers={"user-agent": "Tapjoy/1"})
    _receive("tapjoy", request)

    row = Postback.objects.get()
    assert bytes(row.raw) == request.query
    assert row.headers == {"user-agent": "Tapjoy/1"}
    kept = str(Postback.objects.values().get()) + str(bytes(row.raw))
    assert network.token not in kept
    assert network.secret not in kept
    network.row.refresh_from_db()
    assert network.row.path_token_hash == hashlib.sha256(network.token.encode()).hexdigest()


def test_a_conflicting_repeat_is_marked_and_pays_nothing(caplog: pytest.LogCaptureFixture) -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    first = network.reward(user, amount="10")
    network.send(first)
    assert network.send(first).status == 200
    assert not Postback.objects.get().is_conflicting

    response = network.send(network.reward(user, external_id=first.external_id, amount="10000"))

    assert (response.status, response.body) == (200, "OK")
    assert Postback.objects.get().is_conflicting
    assert balance_of(user).available == 10
    assert "CONFLICTING_DUPLICATE" in caplog.text


@pytest.mark.parametrize("extra", ["&debug=true", "&debug=true&reversal=true"])
def test_a_debug_postback_is_acknowledged_and_credits_nothing(extra: str) -> None:
    user, network = UserFactory.create(), set_up("theoremreach")
    # The dialect puts everything before the hash, so text added to the id is signed as well.
    reward = network.reward(user)
    request = network.request(replace(reward, external_id=reward.external_id + extra))

    response = _receive("theoremreach", request)

    assert (response.status, response.body) == (200, "1")
    row = Postback.objects.get()
    assert (row.kind, row.state, row.external_id) == ("TEST", "INFO", reward.external_id)
    assert balance_of(user).available == 0


def _receive(slug: str, request: RawRequest) -> PostbackResponse:
    return postbacks.receive(slug=slug, request=request, now=timezone.now())
