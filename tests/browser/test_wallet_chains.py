"""A wallet in a browser is offered each chain of the service with its own URL; SCREENSHOTS keeps pictures."""

import random
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.utils.timezone import now
from playwright.sync_api import Browser, Page, ViewportSize, expect
from pytest_django.live_server_helper import LiveServer

from credits.models import EntrySource
from credits.services import entries
from gateway.chain.client import set_chain_client
from gateway.chain.config import chains, home
from gateway.chain.signing import get_signer
from gateway.chain.types import Chain
from relay.models import RelayTransaction
from relay.services.fleet import relayers
from tests.browser.accessibility import violations
from tests.browser.account_page import DESKTOP, PHONE, Holder, holding, toast, whole, window_of
from tests.browser.words import Words
from tests.factories import random_address
from tests.fakes.chain import FakeChain
from tests.relay.two_chains import settings_of

pytestmark = pytest.mark.django_db(transaction=True)
_NAMES = ("Base", "OP", "Ink")


@pytest.fixture
def holder(live_server: LiveServer, settings: Any) -> Iterator[Holder]:
    with holding(live_server, settings) as one:
        yield one


@contextmanager
def further(settings: Any, *draining: str) -> Iterator[list[Chain]]:
    """Serve three further chains, of which some take no calls; yield them."""
    ids = random.sample(range(10**6, 10**9), len(_NAMES))
    settings.CHAINS = {
        chain_id: settings_of(chain_id, name=name, takes_calls=name not in draining)
        for chain_id, name in zip(ids, _NAMES, strict=True)
    }
    with ExitStack() as clients:
        for chain_id in ids:
            set_chain_client(FakeChain(chain_id=chain_id), chain_id=chain_id)
            clients.callback(set_chain_client, None, chain_id=chain_id)
        yield [chain for chain in chains() if chain.id in ids]


def registered(page: Page) -> list[Any]:
    """Return what the wallet has stored, without the names."""
    stored: list[dict[str, Any]] = page.evaluate("window.extension.relayers")
    return [(each["apiUrl"], each["chainIds"]) for each in stored]


def add(page: Page, words: Words) -> None:
    page.get_by_role("button", name=words("Add to my wallet")).click()


@pytest.mark.parametrize(
    ("size", "language"),
    [pytest.param(DESKTOP, "en", id="desktop-en"), pytest.param(PHONE, "de", id="phone-de")],
)
def test_the_wallet_gets_each_chain_that_takes_calls_and_the_page_names_those_it_lacks(
    browser: Browser, holder: Holder, settings: Any, pictures: Path | None, size: ViewportSize, language: str
) -> None:
    words = Words(language)
    with (
        further(settings, "Ink") as (base, op, ink),
        window_of(browser, holder, size=size, locale=language) as page,
    ):
        holder.installs_extension(page)
        holder.signs_in(page)
        page.goto(f"{holder.base_url}/account")
        whole(page)
        page.evaluate(f"window.declinedChains = [{op.id}]")
        add(page, words)

        both = f"{home().name} {'and' if language == 'en' else 'und'} {base.name}"
        expect(toast(page)).to_contain_text(both)
        declined = words("{chain} was not added: you declined it, or your wallet has it already.", chain="OP")
        expect(toast(page)).to_contain_text(declined)
        expect(toast(page)).to_contain_text(
            words("{chain} takes no transactions at the moment. Add it later.", chain=ink.name)
        )
        own = [
            (f"{holder.base_url}/api/lsp15/", [home().id]),
            (f"{holder.base_url}/api/lsp15/{base.id}/", [base.id]),
        ]
        assert registered(page) == own
        assert violations(page) == []
        if pictures:
            page.screenshot(path=pictures / f"wallet-chains-{language}-{size['width']}.png")

        # Once more: the wallet refuses what it has, and takes what was declined.
        page.evaluate("window.declinedChains = []")
        add(page, words)
        expect(toast(page)).to_contain_text(" auf OP." if language == "de" else " on OP.")
        expect(toast(page)).not_to_contain_text(declined)
        assert registered(page) == [*own, (f"{holder.base_url}/api/lsp15/{op.id}/", [op.id])]


def test_a_call_before_the_service_is_added_offers_it_and_then_goes_to_the_path_of_its_chain(
    browser: Browser, holder: Holder, settings: Any
) -> None:
    words = Words("en")
    with further(settings), window_of(browser, holder) as page:
        holder.installs_extension(page)
        holder.signs_in(page)
        key = secrets.token_hex(8)
        entries.grant(user=holder.user, credits=50_000, source=EntrySource.SURVEYS, key=key)
        holder.chain.fund(10**18, holder.profile.profile_address)
        holder.chain.fund(100 * 10**18, *get_signer().addresses())
        relayers.sync(now=now())
        page.goto(f"{holder.base_url}/account")
        page.get_by_text("Try it: send LYX").click()
        page.get_by_label("To address").fill(random_address())
        send = page.get_by_role("button", name="Send with my wallet")
        send.click()
        expect(toast(page)).to_contain_text("Your wallet does not send through this service yet.")
        assert (registered(page), RelayTransaction.objects.exists()) == ([], False)

        toast(page).get_by_role("button", name=words("Add to my wallet")).click()
        expect(toast(page)).to_contain_text("Base, OP, and Ink")
        assert len(registered(page)) == 1 + len(_NAMES)
        send.click()
        expect(toast(page)).to_contain_text("Sent; waiting for the chain:")
    assert RelayTransaction.objects.get().chain_id == home().id
