"""`pgperf build`: compiles the C client."""

from django.core.management.base import OutputWrapper

from pgperf.build import build
from pgperf.conf import get_settings


def run(out: OutputWrapper) -> None:
    settings = get_settings()
    result = build(settings.BUILD_DIR, settings.CC, settings.PG_CONFIG)
    out.write(f"{result.path} (libpq {result.libpq_version})")
