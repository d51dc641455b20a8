"""axe-core: faults of accessibility on a page."""

from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Page

_AXE = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"
#: The rules to which colours matter: all that another colour scheme may break.
COLOURS = ("color-contrast", "link-in-text-block")
_SERIOUS = """async ([selector, rules]) => {
    const chosen = rules.length ? {runOnly: rules} : {};
    const found = await axe.run(selector, {resultTypes: ["violations"], ...chosen});
    return found.violations.filter(each => ["serious", "critical"].includes(each.impact))
        .map(each => each.id + ": " + each.nodes.map(node => node.target.join(" ")).slice(0, 3).join(", "));
}"""


def serious_faults(page: Page, selector: str = "html", rules: Sequence[str] = ()) -> list[str]:
    """The serious faults in that part of the page, by these rules or by all, with some places."""
    assert _AXE.exists(), "npm installs axe-core: make node_modules/axe-core/axe.min.js"
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_AXE.read_text())
    found: list[str] = page.evaluate(_SERIOUS, [selector, list(rules)])
    return found
