"""Follows the steps of docs/install.md word for word, in a new project and in existing sites."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.installation.environments import bare_environment, overlay, run
from tests.installation.layouts import LAYOUTS, Layout
from tests.installation.steps import Project, Shell, database_settings, steps


def test_the_documentation_has_ten_steps(tmp_path: Path) -> None:
    found = steps(Project(), tmp_path / "pgperf.whl")
    assert [step.number for step in found] == list(range(1, 11))
    assert all(step.file or step.text.count("\n") == 1 for step in found), "one command each"


def test_a_site_with_celery_skips_what_it_has(tmp_path: Path) -> None:
    project = Project("shop", "shop.settings", celery="shop.jobs", has_driver=True)
    found = {step.number: step for step in steps(project, tmp_path / "pgperf.whl")}
    assert sorted(found) == [1, 2, 5, 6, 7, 8, 9, 10]
    assert found[2].text == 'INSTALLED_APPS = [*INSTALLED_APPS, "import_export", "pgperf"]\n'
    assert "psycopg" not in found[1].text
    assert found[9].text.startswith("celery -A shop.jobs ")


@pytest.fixture
def environment(
    stack: dict[str, str], new_database: Callable[[str], str]
) -> Callable[[str, Path], dict[str, str]]:
    """The variables of a terminal: the servers' addresses, and an environment's programs on PATH."""

    def make(name: str, venv: Path) -> dict[str, str]:
        tools = Path(stack["PGPERF_PG_CONFIG"]).parent
        return bare_environment(
            PATH=f"{venv / 'bin'}:{tools}:{os.environ['PATH']}",
            DB_NAME=new_database(name),
            DB_USER=stack["PGPERF_DB_USER"],
            DB_PASSWORD=stack["PGPERF_DB_PASSWORD"],
            DB_HOST="127.0.0.1",
            DB_PORT=stack["PGPERF_DB_PORT"],
            PGPERF_BROKER_URL=stack["PGPERF_REDIS_URL"],
        )

    return make


@pytest.fixture
def shells() -> Iterator[list[Shell]]:
    made: list[Shell] = []
    yield made
    for shell in made:
        shell.end()


@pytest.mark.registry
def test_from_a_new_project_to_the_first_finished_run(
    wheel: Path,
    environment: Callable[[str, Path], dict[str, str]],
    shells: list[Shell],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a virtual environment with nothing but Django."""
    venv, folder = tmp_path / "venv", tmp_path / "project"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    folder.mkdir()
    shell = Shell(folder, environment("mysite", venv))
    shells.append(shell)
    shell.run("pip install --quiet 'Django>=5.2,<6.2'")
    shell.run("django-admin startproject mysite .")
    with open(folder / "mysite/settings.py", "a") as settings:
        settings.write(database_settings())
    begin = time.monotonic()
    said = ""
    for step in steps(Project(), wheel):
        since = time.monotonic()
        said = shell.follow(step)
        with capsys.disabled():
            what = step.file or step.text.strip()
            print(f"  {step.number:>2}  {time.monotonic() - since:5.1f} s  {what}")
    with capsys.disabled():
        print(f"      {time.monotonic() - begin:5.1f} s  in all")
    assert_works(shell, said)


@pytest.mark.registry
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_in_an_existing_site(
    layout: Layout,
    wheel: Path,
    environment: Callable[[str, Path], dict[str, str]],
    shells: list[Shell],
    tmp_path: Path,
) -> None:
    venv, folder = tmp_path / "venv", tmp_path / "site"
    overlay(venv, wheel)  # instead of step 1
    shell = Shell(folder, {**environment(layout.name, venv), **layout.variables})
    shells.append(shell)
    layout.write(folder, shell.env)
    for requirement in layout.requirements:
        (packages,) = venv.glob("lib/python*/site-packages")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(packages),
            requirement,
        ]
        run(pip, tmp_path, shell.env)
    shell.run("python manage.py migrate --verbosity=0")  # the site was there before pgperf
    said = ""
    for step in steps(layout.project, wheel)[1:]:
        said = shell.follow(step)
    assert_works(shell, said)


def assert_works(shell: Shell, said: str) -> None:
    """The last step printed a finished run, and nothing is missing."""
    assert ": done" in said
    assert "Django ORM" in said
    assert "libpq (C)" in said
    assert "problem" not in shell.run("python manage.py pgperf doctor")
    shell.run("python manage.py check --fail-level=WARNING --database=default")
