"""`pgperf build`: compiles the C client; with --drivers, also installs the drivers that the site
lacks.
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from pgperf.conf import Settings, get_settings
from pgperf.install.c_client import build
from pgperf.install.drivers import build_drivers


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--drivers",
        action="store_true",
        help="also install the drivers that the site lacks, in a separate virtual environment",
    )


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    settings = get_settings()
    if options["drivers"]:
        _drivers(settings, out)
    result = build(settings.BUILD_DIR, settings.CC, settings.PG_CONFIG)
    out.write(f"{result.path} (libpq {result.libpq_version})")


def _drivers(settings: Settings, out: OutputWrapper) -> None:
    result = build_drivers(settings.BUILD_DIR)
    if result.requirements:
        out.write(f"{result.python} ({', '.join(result.requirements)})")
    else:
        out.write("The site has every driver that needs no compiler. Nothing was installed.")
