"""Export and import, cloning, notes and pins in a browser."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pgperf.models import Benchmark, Database, Run
from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_export_edit_import(page: Page, tmp_path: Path) -> None:
    factories.make_database()
    page.goto("/admin/pgperf/database/")
    page.get_by_role("link", name="Export").click()
    page.get_by_label("JSON").check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    rows = json.loads(Path(download.value.path()).read_text())
    rows[0]["notes"] = "From the other site."
    file = tmp_path / "databases.json"

    file.write_text(json.dumps([*rows, {"name": "shop", "dbname": "host=evil", "credential": "hunter2"}]))
    page.goto("/admin/pgperf/database/")
    page.get_by_role("link", name="Import").click()
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()
    wrong = page.locator("table.problems tbody tr")
    expect(wrong).to_have_count(2)
    expect(wrong.first).to_contain_text("dbname")
    expect(page.get_by_text("hunter2")).to_have_count(0)
    assert Database.objects.get().notes == ""

    file.write_text(json.dumps(rows))
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_role("button", name="Check without importing").click()
    expect(page.get_by_text("demo changes: notes")).to_be_visible()
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("0 new, 1 changed, 0 unchanged")).to_be_visible()
    assert Database.objects.get().notes == "From the other site."


def test_clone_a_benchmark(page: Page) -> None:
    benchmark = factories.make_benchmark()
    page.goto(f"/admin/pgperf/benchmark/{benchmark.pk}/change/")
    page.get_by_role("button", name="Clone").click()
    expect(page.get_by_text("This benchmark is a clone of orm-overhead.")).to_be_visible()
    expect(page.get_by_label("Name:")).to_have_value("orm-overhead-copy")
    assert Benchmark.objects.get(name="orm-overhead-copy").layers == benchmark.layers


def test_add_notes_and_pin_a_run(page: Page) -> None:
    factories.make_worker()
    run = factories.make_results(factories.make_run())
    page.goto(f"/admin/pgperf/run/{run.pk}/change/")
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_text("More", exact=True).click()
    expect(page.get_by_role("button", name="Unpin")).to_be_visible()
    page.get_by_text("Add notes").click()
    page.get_by_role("textbox", name="Notes").fill("Before the upgrade.")
    page.get_by_role("button", name="Save notes").click()
    expect(page.get_by_text("The notes are saved.")).to_be_visible()
    expect(page.locator(".pgperf-notes")).to_have_text("Before the upgrade.")
    page.goto("/admin/pgperf/run/?q=upgrade")
    expect(page.get_by_text("pinned · Before the upgrade.")).to_be_visible()
    page.goto(f"/admin/pgperf/run/{run.pk}/history/")
    expect(page.get_by_text("Changed the notes. From 127.0.0.1.")).to_be_visible()
    assert Run.objects.get().pinned
