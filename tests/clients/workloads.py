"""ORM callables for the tests; imported where Django is set up."""

import mmap
import os
import sys

from asgiref.sync import sync_to_async

from pgperf.catalog.orm import Site
from pgperf.registry import workload


@workload("tests.raw")
def raw(sql: str) -> list[Site]:
    """Any SELECT with the columns id, domain and name."""
    return list(Site.objects.raw(sql))


@workload("tests.lazy")
def lazy(domain: str) -> object:
    return Site.objects.filter(domain=domain)


@workload("tests.nothing")
def nothing(domain: str) -> Site | None:
    return Site.objects.filter(domain=f"no {domain}").first()


@workload("tests.mapping")
def mapping(gigabytes: int, permission: int) -> list[Site]:
    """Reads a row while so much address space is mapped."""
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, gigabytes << 30, flags=kind, prot=permission):
        return raw("SELECT 1 AS id, 'd' AS domain, 'n' AS name")


@workload("tests.noisy")
def noisy(domain: str) -> Site:
    print("stray text")
    print("stray text, flushed at once", flush=True)
    sys.stdout.buffer.write(b"\x00\xff stray bytes\n")
    os.write(1, b'{"type":"bye"}\n')
    return Site.objects.get(domain=domain)


@workload("tests.raw")
async def araw(sql: str) -> list[Site]:
    return await sync_to_async(raw)(sql)


@workload("tests.lazy")
async def alazy(domain: str) -> object:
    return lazy(domain)


@workload("tests.nothing")
async def anothing(domain: str) -> Site | None:
    return await Site.objects.filter(domain=f"no {domain}").afirst()
