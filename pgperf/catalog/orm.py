"""The catalog's workloads as ORM calls, on pgperf's own model of the fixture."""

from typing import ClassVar

from asgiref.sync import sync_to_async
from django.db import models

from pgperf.registry import workload


class Site(models.Model):
    """A row of the fixture `site`; the shape of django.contrib.sites.

    The label keeps it out of the site's apps.
    """

    id = models.IntegerField(primary_key=True)
    domain = models.CharField(max_length=100, unique=True)
    name = models.CharField(max_length=50)

    objects: ClassVar[models.Manager["Site"]] = models.Manager()

    class Meta:
        managed = False
        app_label = "pgperf_catalog"
        db_table = '"pgperf"."site"'
        ordering = ["domain"]

    def __str__(self) -> str:
        return self.domain


@workload("pgperf.site_by_domain")
def site_by_domain(domain: str) -> Site:
    return Site.objects.get(domain=domain)


@workload("pgperf.sites_by_name")
def sites_by_name(name: str) -> list[Site]:
    return list(Site.objects.filter(name=name))


@workload("pgperf.light")
def light() -> list[Site]:
    return list(Site.objects.raw("SELECT 1 AS id"))


@workload("pgperf.site_by_domain")
async def asite_by_domain(domain: str) -> Site:
    return await Site.objects.aget(domain=domain)


@workload("pgperf.sites_by_name")
async def asites_by_name(name: str) -> list[Site]:
    return [site async for site in Site.objects.filter(name=name)]


@workload("pgperf.light")
async def alight() -> list[Site]:
    """Django has no asynchronous form of a raw query."""
    return await sync_to_async(light)()
