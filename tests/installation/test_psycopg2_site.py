"""pgperf does not change the driver of a site on psycopg2."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.installation.environments import Site, address, bare_environment, run

pytestmark = pytest.mark.registry

SETTINGS = """
import json, os
from pathlib import Path
SECRET_KEY = "x"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes"]
if os.environ.get("WITH_PGPERF"):
    INSTALLED_APPS += ["import_export", "pgperf"]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", **json.loads(os.environ["OLD_SITE"])}}
PGPERF = {"BUILD_DIR": os.environ["BUILD_DIR"], "PG_CONFIG": os.environ["PG_CONFIG"]}
USE_TZ = True
"""
MANAGE = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
DRIVER = (
    "import django; django.setup();"
    "from django.db.backends.postgresql.psycopg_any import is_psycopg3;"
    "from django.db import connection; connection.ensure_connection();"
    "print(is_psycopg3, connection.Database.__name__)"
)
#: Which of these an environment has.
FIND = "import importlib.util as u; print([n for n in ('psycopg', 'psycopg2', 'django') if u.find_spec(n)])"
LAYERS = ["libpq", "psycopg2", "psycopg", "django_cursor", "django_orm"]
SHORT = ["--blocks", "1", "--rounds", "2", "--slice-ms", "20", "--placement", "scheduler"]


def driver(site: Site) -> str:
    return site.run("-c", DRIVER).strip()


def packages(site: Site) -> set[str]:
    """The installed packages without pgperf and its dependencies."""
    return set(site.run("-m", "pip", "freeze").split("\n"))


@pytest.fixture(scope="module")
def before(
    stack: dict[str, str], new_database: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Site:
    """The site before the installation of pgperf."""
    folder = tmp_path_factory.mktemp("old")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    env = bare_environment(
        DJANGO_SETTINGS_MODULE="settings",
        OLD_SITE=json.dumps(address(stack, new_database("old_site"))),
        BUILD_DIR=str(folder / "build"),
        PG_CONFIG=stack["PGPERF_PG_CONFIG"],
    )
    (folder / "settings.py").write_text(SETTINGS)
    (folder / "manage.py").write_text(MANAGE)
    site = Site(folder, folder / "venv" / "bin" / "python", env)
    site.run("-m", "pip", "install", "--quiet", "Django>=5.2,<6.2", "psycopg2-binary")
    return site


def test_the_driver_is_unchanged_and_every_layer_runs(before: Site, wheel: Path) -> None:
    assert driver(before) == "False psycopg2"
    installed = packages(before)

    before.run("-m", "pip", "install", "--quiet", str(wheel))
    with_pgperf = packages(before)
    assert installed <= with_pgperf, "no package of the site's has changed"
    site = Site(before.folder, before.python, {**before.env, "WITH_PGPERF": "1"})
    assert driver(site) == "False psycopg2"

    site.manage("migrate", "--verbosity=0")
    site.manage("pgperf", "add", "default", "--allow-fixtures")
    abilities = {row["name"]: row for row in json.loads(site.manage("pgperf", "list", "--json"))["layers"]}
    assert "pgperf build --drivers" in abilities["psycopg"]["modes"]["simple"]

    said = site.manage("pgperf", "build", "--drivers")
    own = site.folder / "build" / "drivers" / "bin" / "python"
    assert str(own) in said
    assert packages(site) == with_pgperf
    assert driver(site) == "False psycopg2"

    abilities = {row["name"]: row for row in json.loads(site.manage("pgperf", "list", "--json"))["layers"]}
    assert [abilities[layer]["modes"]["simple"] for layer in LAYERS] == [""] * len(LAYERS)
    assert abilities["psycopg"]["python"] == str(own)
    assert abilities["django_orm"]["python"] == str(site.python)
    assert f"psycopg: can run here, in {own}" in site.manage("pgperf", "doctor", code=1)  # there is no broker

    result = json.loads(
        site.manage("pgperf", "run", "orm-overhead", "--json", "--layers", ",".join(LAYERS), *SHORT)
    )
    assert (result["run"]["status"], result["run"]["skipped"]) == ("done", [])
    assert {variant["layer"] for variant in result["variants"]} == set(LAYERS)
    used = result["run"]["environment"]["layers"]
    assert used["psycopg"]["driver"] == "psycopg"
    assert used["django_orm"]["driver"] == used["django_cursor"]["driver"] == "psycopg2"
    assert driver(site) == "False psycopg2"
    assert run([str(own), "-c", FIND], site.folder, site.env).strip() == "['psycopg']"
