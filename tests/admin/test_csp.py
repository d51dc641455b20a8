"""pgperf's pages obey `default-src 'self'`: no inline code, no external files."""

from html.parser import HTMLParser

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.models import Run
from tests import factories


class Inline(HTMLParser):
    """Collects the elements that a strict policy would block."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "style" or (
            tag == "script" and "src" not in given and given.get("type") != "application/json"
        ):
            self.found.append(f"<{tag}>")
        self.found += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        for name in ("src", "href", "action"):
            value = given.get(name) or ""
            if value.startswith(("http:", "https:", "//", "javascript:", "data:")):
                self.found.append(f"{tag} {name}={value}")


def inline_parts(page: str) -> list[str]:
    parser = Inline()
    parser.feed(page)
    return parser.found


def test_the_parser_finds_violations() -> None:
    page = '<style></style><script>x</script><p style="x" onclick="y"><script src="//cdn/x.js"></script>'
    assert len(inline_parts(page)) == 5


@pytest.mark.parametrize("status", [*Run.Status.values])
def test_run_pages(admin_page: Client, run: Run, status: str) -> None:
    shown = (
        run if status == "done" else factories.make_run(status, error="</script><script>alert(1)</script>")
    )
    page = admin_page.get(reverse("admin:pgperf_run_change", args=[shown.pk])).content.decode()
    assert inline_parts(page) == []


@pytest.mark.parametrize("model", ["benchmark", "database", "workload", "run", "worker"])
def test_lists(admin_page: Client, run: Run, model: str) -> None:
    assert inline_parts(admin_page.get(reverse(f"admin:pgperf_{model}_changelist")).content.decode()) == []


def test_forms_and_the_start_page(admin_page: Client, run: Run) -> None:
    factories.make_database("live", production=True)
    for name in ("pgperf_benchmark_change", "pgperf_benchmark_run"):
        page = admin_page.get(reverse(f"admin:{name}", args=[run.benchmark_id])).content.decode()
        assert inline_parts(page) == []


def test_a_label_cannot_break_out_of_its_json(admin_page: Client, run: Run) -> None:
    run.summary["ladders"][0]["route"] = "</script><script>alert(1)</script>"
    run.save()
    page = admin_page.get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()
    assert inline_parts(page) == []
    assert "<script>alert(1)" not in page
