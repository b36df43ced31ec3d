"""The page of the API: small, fetched at once, its operations collapsed."""

from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.browser.admin_client import AdminClient


def test_the_page_of_the_api_fetches_its_document_once_and_shows_operations_when_asked(
    admin: AdminClient,
) -> None:
    fetched: list[str] = []
    admin.page.on("request", lambda request: fetched.append(request.url.removeprefix(admin.base_url)))
    page = admin.open("/api/docs")
    expect(page.locator("#operations-tag-payments")).to_be_visible()
    expect(page.locator(".opblock")).to_have_count(0)
    assert violations(page) == []
    assert fetched.count("/api/openapi.json") == 1
    assert not [path for path in fetched if "standalone" in path]

    page.locator("#operations-tag-payments").click()
    page.locator("#operations-payments-getCard .opblock-summary-control").click()

    # An example is shown although the document has it once for all operations.
    expect(page.locator("#operations-payments-getCard")).to_contain_text("billing-unavailable")
    assert violations(page) == []
