"""Pages of the explorer that is configured, and none where there is none."""

import secrets
from typing import Any

from gateway.common import explorer


def test_a_transaction_and_an_account_have_a_page_at_the_explorer(settings: Any) -> None:
    settings.EXPLORER_URL = f"https://{secrets.token_hex(4)}.example"
    name = "0x" + secrets.token_hex(20)

    assert explorer.transaction_page(name) == f"{settings.EXPLORER_URL}/tx/{name}"
    assert explorer.account_page(name) == f"{settings.EXPLORER_URL}/address/{name}"


def test_without_an_explorer_nothing_has_a_page(settings: Any) -> None:
    settings.EXPLORER_URL = ""

    assert (explorer.transaction_page("0x00"), explorer.account_page("0x00")) == ("", "")
