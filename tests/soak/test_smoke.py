"""A few cases of the kill and fault campaigns on a real site."""

import os
import subprocess
import sys

import pytest

from soak.__main__ import ROOT


def campaign(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a campaign without the environment variables of the test session's stack."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PGPERF_", "DJANGO_"))}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    [
        ("soak.kills", "--count=8", "--victims=client,web", "--lanes=1"),
        ("soak.faults", "--case=five deliveries", "--count=3"),
        ("soak.faults", "--case=junk on the queue", "--count=2"),
    ],
    ids=["kills", "faults", "junk"],
)
def test_a_small_campaign_holds(words: tuple[str, ...]) -> None:
    done = campaign(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hold" in done.stdout.splitlines()[-1]
