"""What axe-core, the rules of WCAG as a program, finds wrong with a page."""

from pathlib import Path

from playwright.sync_api import Page

_AXE = Path(__file__).with_name("node_modules") / "axe-core" / "axe.min.js"
_RUN = """
async () => (await axe.run(document, { resultTypes: ["violations"] })).violations.flatMap(
  ({ id, help, nodes }) => nodes.map(({ target }) => `${id}: ${help}: ${target.join(" ")}`))
"""


def violations(page: Page) -> list[str]:
    """Return every violation of any level on the page as it is now, as rule, help and element."""
    # Evaluated by the browser's driver: the page's own policy forbids scripts that are not its files.
    page.evaluate(_AXE.read_text())
    broken: list[str] = page.evaluate(_RUN)
    return broken
