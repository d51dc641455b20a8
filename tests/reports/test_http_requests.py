"""HTTP requests of a run: what its page says of them, and what files have."""

import csv
import io

import pytest

from pgperf.models import Run
from pgperf.reports import http_requests, result_keys
from pgperf.reports.csv_results import variants_csv
from pgperf.reports.run_json import variant_json
from tests import factories, site_steps

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return site_steps.with_requests(site_steps.make_run())


def rows(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(variants_csv(run))))


def test_counts_and_lengths_are_whole_numbers(run: Run) -> None:
    first, second, *_others = http_requests.request_table(list(run.variants.order_by("position"))).rows
    assert [cell.text for cell in first[1:]] == [
        "5,000", "2", "status 502 (1); timed out (1)", "75.0", "6,000 to 6,144",
    ]  # fmt: skip
    assert [cell.text for cell in second[2:4]] == ["0", ""]


def test_a_file_has_what_came_of_the_requests(run: Run) -> None:
    first, second, *_others = rows(run)
    assert {name: first[f"http_{name}"] for name in result_keys.HTTP} == {
        "requests": "5000",
        "errors": "status 502 (1); timed out (1)",
        "kept_share": "0.75",
        "least_bytes": "6000",
        "most_bytes": "6144",
    }
    assert (second["http_errors"], second["http_most_bytes"]) == ("", "6145")
    assert first["cpu_account_web_workers"] == "4"


def test_a_file_has_the_phases_of_the_json(run: Run) -> None:
    for line, row in zip(rows(run), run.variants.order_by("position"), strict=True):
        for phase, figures in variant_json(row)["phases_us"].items():
            cells = {key: line[f"phases_us_{phase}_{key}"] for key in figures}
            assert cells == {key: "" if us is None else str(us) for key, us in figures.items()}


def test_a_file_and_the_page_agree(run: Run) -> None:
    table = http_requests.request_table(list(run.variants.order_by("position")))
    for line, cells in zip(rows(run), table.rows, strict=True):
        _variant, requests, failed, reasons, kept, lengths = cells
        assert [line["http_requests"], line["errors"]] == [str(requests.value), str(failed.value)]
        assert line["http_errors"] in reasons.text
        assert 100 * float(line["http_kept_share"]) == kept.value
        assert lengths.text.startswith("6,000 to 6,14")


def test_other_layers_have_empty_cells() -> None:
    plain = factories.make_results(factories.make_run())
    kinds = ("http_", "phases_us_first_byte_", "phases_us_receive_", "cpu_account_web_workers")
    found = [value for row in rows(plain) for name, value in row.items() if name.startswith(kinds)]
    assert set(found) == {""}
    assert len(found) == plain.variants.count() * (len(result_keys.HTTP) + 2 * len(result_keys.LATENCY) + 1)
