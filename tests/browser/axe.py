"""axe-core: faults of accessibility on a page."""

from pathlib import Path

from playwright.sync_api import Page

_AXE = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"
_SERIOUS = """async selector => {
    const found = await axe.run(selector, {resultTypes: ["violations"]});
    return found.violations.filter(each => ["serious", "critical"].includes(each.impact))
        .map(each => each.id + ": " + each.nodes.map(node => node.target.join(" ")).slice(0, 3).join(", "));
}"""


def serious_faults(page: Page, selector: str = "html") -> list[str]:
    """The serious faults in that part of the page, with the places of some."""
    assert _AXE.exists(), "npm installs axe-core: make node_modules/axe-core/axe.min.js"
    page.evaluate(_AXE.read_text())
    found: list[str] = page.evaluate(_SERIOUS, selector)
    return found
