"""A program that takes runs through their states, for tests of other databases of a site.

One argument: the `default` of DATABASES, as JSON.
"""

import json
import os
import sys
import threading
from datetime import timedelta
from pathlib import Path

import django
from django.conf import settings

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
settings.configure(
    SECRET_KEY="x",
    USE_TZ=True,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "import_export", "pgperf"],
    DATABASES={"default": json.loads(sys.argv[1])},
)
os.environ.pop("DJANGO_SETTINGS_MODULE", None)
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.utils import timezone  # noqa: E402

from pgperf.core.exceptions import RunConflict, RunWaits  # noqa: E402
from pgperf.core.records import VariantBlock  # noqa: E402
from pgperf.models import Benchmark, Database, Run, Target  # noqa: E402
from pgperf.reports.raw_slices import slices_csv  # noqa: E402
from pgperf.runs import state, store  # noqa: E402
from tests.core.builders import slice_record, variant  # noqa: E402

VARIANT = variant(workload="spin", layer="fake", route="tcp", placement="scheduler")
SLICE = slice_record(position=1, window_ns=200_000_000, us_per_op=20.0, ops_per_s=50_000.0, client_ns=7)
BLOCK = VariantBlock(variant=VARIANT, cohort=0, block=0, slices=(SLICE,), histogram=b"\x00\xffpacked")


def main() -> None:
    call_command("migrate", verbosity=0)
    database = Database.objects.create(name="demo", dbname="app", credential="alias:default")
    Target.objects.create(database=database, route="tcp", host="127.0.0.1")
    first, second, third = (ask(database) for _ in range(3))

    holder = state.claim(first.pk, "w@h")
    assert abs(holder.heartbeat_at - timezone.now()) < timedelta(minutes=1), "the database's clock"
    try:
        state.claim(second.pk, "w@h")
    except RunWaits:
        print("conflict", end=", ")

    Run.objects.filter(pk=holder.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    assert state.effective_status(holder) == "lost"
    assert state.with_effective_status(Run.objects.all()).get(pk=holder.pk).effective == "lost"
    heir = state.claim(second.pk, "w@h")
    assert state.effective_status(heir) == "running"
    holder.refresh_from_db()
    print(holder.status, end=", ")

    store.save_blocks(heir, [BLOCK])
    assert store.load_blocks(heir) == [BLOCK]
    assert [line.split(",")[0] for line in slices_csv(heir)] == ["run_id", str(heir.pk)]
    state.heartbeat(heir, 0.5, "half")
    state.finish(heir)
    print(heir.status, end=", ")

    state.request_cancel(third)
    print(third.status, end="; ")
    print(f"{winners(ask(database))} of 20 won")


def ask(database: Database) -> Run:
    return state.request(Benchmark.objects.get(name="orm-overhead"), database, foreground=True)


def winners(run: Run) -> int:
    barrier, won = threading.Barrier(20), []

    def claim() -> None:
        barrier.wait()
        try:
            won.append(state.claim(run.pk, "w@h"))
        except RunConflict:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=claim) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(won)


main()
