"""The report in one file, opened from disk with the network off."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from pgperf.models import Run
from pgperf.reports.html_report import comparison_html, run_html
from pgperf.reports.several_runs import compare_several
from tests import factories
from tests.browser.axe import serious_faults
from tests.browser.conftest import look
from tests.browser.test_run_topics import RUNS, SHOWN

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: Titles of charts without a visible mark of some size.
EMPTY = """() => [...document.querySelectorAll("figure")].filter(figure => {
    const marks = [...figure.querySelectorAll("svg :is(rect, circle, polygon, .lined)")];
    return !marks.some(mark => {
        const [box, style] = [mark.getBoundingClientRect(), getComputedStyle(mark)];
        const paint = style.fill === "none" ? style.stroke : style.fill;
        return box.width > 2 && box.height > 2 && paint.startsWith("rgb") && paint !== "rgb(0, 0, 0)";
    });
}).map(figure => figure.id)"""
#: Labels whose text begins left of their drawing, or that lie on each other.
CLIPPED = """() => [...document.querySelectorAll("svg")].flatMap(svg => {
    const around = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].filter(text => {
        const box = text.getBoundingClientRect();
        return box.left < around.left - 1 || box.right > around.right + 1;
    }).map(text => text.textContent);
})"""
#: How cells of tables stand, by the kind of their column.
ALIGNED = """() => {
    const found = { words: new Set(), numbers: new Set() };
    for (const cell of document.querySelectorAll("table.numbers :is(tbody th, td, thead th)")) {
        const words = cell.matches(".words, :first-child");
        found[words ? "words" : "numbers"].add(getComputedStyle(cell).textAlign);
    }
    return { words: [...found.words].sort(), numbers: [...found.numbers] };
}"""
#: The least contrast of a figure inside a segment with a colour of the same group of marks.
CONTRAST = """() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const luminance = colour => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(part => part / 255)
            .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [...document.querySelectorAll(".inside")].map(group => {
        const segments = group.closest("svg").querySelector(`.segment[style="${group.getAttribute("style")}"]`);
        const [ink, ground] = [group, segments].map(each => luminance(getComputedStyle(each).fill));
        return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    });
    return Math.min(...found);
}"""
#: The topics whose links are marked as that which is shown.
MARKED = """() => [...document.querySelectorAll(".pgperf-topics a")]
    .filter(each => getComputedStyle(each).fontWeight === "600").map(each => each.textContent)"""
EVERYTHING = "#topic-all"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture
def offline(browser: Browser, transactional_db: None) -> Iterator[Page]:
    """A page without a network. A console error or a request beyond the file fails the test."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    errors: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    context.close()
    assert errors == []
    assert {each for each in asked if not each.startswith("file:")} == set()
    assert len(asked) == 1


def kept(html: str, folder: Path) -> str:
    path = folder / "report.html"
    path.write_text(html)
    return path.as_uri()


@pytest.mark.parametrize("kind", RUNS)
def test_charts_are_visible_and_nothing_is_asked_for(offline: Page, tmp_path: Path, kind: str) -> None:
    """The file has no script, so that it need not be loaded for each colour scheme."""
    offline.goto(kept(run_html(RUNS[kind]()), tmp_path) + EVERYTHING)
    assert offline.locator("figure svg").count() >= 2
    for scheme in ("light", "dark"):
        look(offline, 1280, scheme)
        assert offline.evaluate(EMPTY) == [], scheme
        assert offline.evaluate(CLIPPED) == [], scheme
        assert offline.evaluate(CONTRAST) >= 4.5, scheme
        shade = [int(part) for part in offline.evaluate(BACKGROUND)[4:-1].split(",")]
        assert (sum(shade) < 100) == (scheme == "dark")
        look(offline, 800, scheme)
        assert offline.evaluate("document.documentElement.scrollWidth") <= 800, scheme
        look(offline, 1280, scheme)
        assert offline.evaluate("document.documentElement.scrollWidth") <= 1280, scheme


def test_the_comparison_of_runs_opens_from_disk(offline: Page, tmp_path: Path) -> None:
    runs = [factories.make_results(factories.make_run(), slower={"django_orm": by}) for by in (1.0, 1.3)]
    offline.goto(kept(comparison_html(compare_several(runs)), tmp_path))
    assert offline.locator("figure svg").count() >= 1
    assert offline.evaluate(EMPTY) == []
    for width in (1280, 800):
        look(offline, width, "light")
        assert offline.evaluate(CLIPPED) == [], width
        assert offline.evaluate("document.documentElement.scrollWidth") <= width


def test_it_shows_one_topic_at_a_time(offline: Page, tmp_path: Path) -> None:
    offline.goto(kept(run_html(RUNS["three routes"]()), tmp_path))
    assert offline.evaluate(SHOWN) == ["answer"]
    assert offline.evaluate("document.documentElement.scrollHeight") < 2_000
    for name, topic in (("Latency", "latency"), ("Host", "host")):
        offline.get_by_role("link", name=name, exact=True).click()
        assert offline.url.endswith(f"#topic-{topic}")
        assert offline.evaluate(SHOWN) == [topic]
        assert offline.evaluate(MARKED) == [name]
        expect(offline.locator(".pgperf-topics")).to_be_in_viewport()
    offline.go_back()
    assert offline.evaluate(SHOWN) == ["latency"]
    offline.get_by_role("link", name="Everything").click()
    assert len(offline.evaluate(SHOWN)) == offline.locator(".pgperf-topic").count() > 5
    assert offline.evaluate(MARKED) == ["Everything"]


def test_a_link_of_the_answer_leads_into_its_topic(offline: Page, tmp_path: Path) -> None:
    offline.goto(kept(run_html(RUNS["three routes"]()), tmp_path))
    assert offline.evaluate(MARKED) == ["Answer"]
    offline.get_by_role("link", name="Bottleneck", exact=True).click()
    expect(offline.locator("#run-verdicts")).to_be_in_viewport()
    assert offline.evaluate(SHOWN) == ["time"]
    assert offline.evaluate(MARKED) == ["Where the time goes"]


def test_a_link_to_a_figure_shows_it(offline: Page, tmp_path: Path) -> None:
    offline.goto(kept(run_html(RUNS["three routes"]()), tmp_path) + "#chart-waits")
    expect(offline.locator("#chart-waits")).to_be_in_viewport()
    assert offline.evaluate(SHOWN) == ["server"]


def test_printing_it_shows_everything(offline: Page, tmp_path: Path) -> None:
    offline.goto(kept(run_html(RUNS["three routes"]()), tmp_path) + "#topic-host")
    offline.emulate_media(media="print")
    assert len(offline.evaluate(SHOWN)) == offline.locator(".pgperf-topic").count() > 5
    assert offline.evaluate("[...document.querySelectorAll('table')].every(each => each.checkVisibility())")


def test_numbers_stand_to_the_right_in_the_file_and_on_the_page(
    offline: Page, page: Page, tmp_path: Path
) -> None:
    run = RUNS["three routes"]()
    offline.goto(kept(run_html(run), tmp_path))
    page.goto(f"/admin/pgperf/run/{run.pk}/change/")
    for shown in (offline, page):
        found = shown.evaluate(ALIGNED)
        assert found["numbers"] == ["right"]
        assert set(found["words"]) <= {"left", "start"}


@pytest.mark.parametrize("kind", ["three routes", "suite"])
def test_the_file_has_no_serious_fault_of_accessibility(
    browser: Browser, transactional_db: None, tmp_path: Path, kind: str
) -> None:
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(kept(run_html(RUNS[kind]()), tmp_path) + EVERYTHING)
    assert serious_faults(page) == []
    context.close()


def test_the_menu_has_the_file(page: Page, tmp_path: Path) -> None:
    run: Callable[[], Run] = RUNS["three routes"]
    page.goto(f"/admin/pgperf/run/{run().pk}/change/")
    page.get_by_text("More", exact=True).click()
    with page.expect_download() as found:
        page.get_by_role("link", name="Download report (HTML)").click()
    assert found.value.suggested_filename.endswith("-report.html")
    assert "<svg" in Path(found.value.path()).read_text()
