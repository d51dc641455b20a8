"""What a client process is told before it connects: its spec, by its variant."""

import os

from pgperf.core import layers, protocol, sql_parameters
from pgperf.core.records import Definition, Route, Variant, WorkloadDefinition
from pgperf.runner.client_process import ProcessEnvironment, login, site_environment


def single(definition: Definition, work: WorkloadDefinition, layer: str, mode: str, route: Route) -> Variant:
    """The variant of a client that works alone, beside those that the run compares."""
    return Variant(
        workload=work.name,
        layer=layer,
        mode=mode,
        route=route.name,
        clients=1,
        connect="persistent",
        placement=definition.placement,
    )


def process_environment(work: WorkloadDefinition, layer: str) -> ProcessEnvironment | None:
    """The site's for Django's layers of the site's own workloads, else none: a clean environment."""
    return site_environment() if work.is_site and layers.LAYERS[layer].needs_site else None


def spec(
    definition: Definition,
    variant: Variant,
    route: Route,
    name: str,
    cold: bool,
    spawned_ns: int,
    memory_bytes: int = 0,
) -> protocol.Spec:
    """The spec for a client of that variant."""
    work = definition.work(variant.workload)
    calls_orm = layers.calls_orm(variant.layer)
    return protocol.Spec(
        layer=variant.layer,
        mode=variant.mode,
        connection_mode=variant.connect,
        url=route.url or (definition.web_origin if layers.requests_pages(variant.layer) else ""),
        workers=variant.clients if variant.is_one_process else variant.workers,
        **login(route),
        application_name=name,
        row_type=definition.row_type,
        transaction=definition.transaction,
        statements=_statements(work, variant.layer),
        bulk=_bulk(work, definition.bulk_api),
        page=_page(work) if layers.requests_pages(variant.layer) else protocol.Page(),
        orm=work.orm,
        orm_args=list(work.args),
        query=work.query,
        site=work.is_site,
        other_statements=_other_statements(work) if layers.runs_statements(variant.layer) else [],
        other_orm=work.other_orm if calls_orm else "",
        other_orm_args=list(work.other_args),
        spawned_ns=spawned_ns,
        runner_pid=os.getpid(),
        cold=cold,
        memory_bytes=memory_bytes * (variant.clients if variant.is_one_process else 1),
        nominal_us=definition.nominal_us.get(variant.label, definition.nominal_us.get(variant.layer, 0.0)),
    )


def _statements(work: WorkloadDefinition, layer: str) -> list[protocol.Statement]:
    """Captured ones may be too many for a layer that does not send them to read."""
    if work.statements and not layers.runs_statements(layer):
        return []
    if work.bulk:
        return [sql_parameters.row_statement(work.bulk.sql, work.bulk.row)]
    return list(work.statements) or sql_parameters.statements(work.sql, work.args)


def _bulk(work: WorkloadDefinition, api: str) -> protocol.Bulk:
    insert = work.bulk
    if not insert:
        return protocol.Bulk()
    return protocol.Bulk(
        insert.kind, insert.table, list(insert.columns), list(insert.types), insert.rows, api
    )


def _page(work: WorkloadDefinition) -> protocol.Page:
    """The page that a layer above the ORM requests."""
    page = work.page
    return protocol.Page(page.path, page.method, work.cookie) if page else protocol.Page()


def _other_statements(work: WorkloadDefinition) -> list[protocol.Statement]:
    return list(work.other_statements) or sql_parameters.statements(work.other_sql, work.other_args)
