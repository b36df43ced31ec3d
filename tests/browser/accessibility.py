"""What axe-core, the rules of WCAG as a program, finds wrong with a page."""

from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page

_AXE = Path(__file__).with_name("node_modules") / "axe-core" / "axe.min.js"
# Half way from one colour to another, a text may be hard to read.
_FINISH = """
() => document.getAnimations().forEach((one) =>
  one.effect.getComputedTiming().endTime === Infinity ? one.cancel() : one.finish())
"""
_RUN = """
async (left_out) => (await axe.run({ exclude: left_out }, { resultTypes: ["violations"] })).violations.flatMap(
  ({ id, help, nodes }) => nodes.map(({ target }) => `${id}: ${help}: ${target.join(" ")}`))
"""


def violations(page: Page, *, left_out: Sequence[str] = ()) -> list[str]:
    """
    Return every violation of any level on the page as it is now, as rule, help and element.

    What the selectors `left_out` match is not looked at.
    """
    # Evaluated by the browser's driver: the page's own policy forbids scripts that are not its files.
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE.read_text())
    page.evaluate(_FINISH)
    broken: list[str] = page.evaluate(_RUN, list(left_out))
    return broken
