"""`make demo`, as far as it can be read without running it."""

import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("serve", "says"), [("0", True), ("1", False)])
def test_a_demo_that_ends_says_how_to_open_the_page_of_its_run(serve: str, says: bool) -> None:
    words = ["make", "--no-print-directory", "--dry-run", "demo", f"SERVE={serve}"]
    planned = subprocess.run(words, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    last = planned.strip().splitlines()[-1]
    assert last.startswith('echo "make up serves that page') is says
    assert ("--stay" in planned) is not says
