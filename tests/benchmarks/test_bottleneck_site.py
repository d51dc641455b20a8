"""benchmarks.bottleneck_site: each of its pages answers, in a process with its settings."""

import json
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
#: Requests pages through Django's own handler: path -> status and text.
ASK = """
import json, django
django.setup()
from django.test import Client
paths = ["/", "/slow-template/?size=100", "/slow-query/?size=5", "/many-queries/?size=4"]
answers = {path: Client(SERVER_NAME="127.0.0.1").get(path) for path in paths}
print(json.dumps({path: [each.status_code, each.content.decode()] for path, each in answers.items()}))
"""


def test_every_page_answers_as_large_as_asked(stack: dict[str, str]) -> None:
    env = {**os.environ, **stack, "DJANGO_SETTINGS_MODULE": "benchmarks.bottleneck_site"}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=env, cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {status for status, _text in found.values()} == {200}
    assert found["/slow-template/?size=100"][1].count("<li>") == 100
    assert found["/slow-query/?size=5"][1] == "5000"
    assert found["/many-queries/?size=4"][1] == "6"  # 0 + 1 + 2 + 3
