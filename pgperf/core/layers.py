"""The layers that pgperf measures (pure). A new layer is one client program and one entry of
LAYERS.

Lists of layers elsewhere (forms, estimates, environment, charts, ladders) are made from these
entries.
"""

from dataclasses import dataclass, replace
from enum import IntEnum

from pgperf.core.protocol import BULK_APIS, CONNECTION_MODES, MODES, ROW_TYPES
from pgperf.core.translation import gettext_noop


@dataclass(frozen=True)
class Family:
    """Layers that share a colour in charts: "#rrggbb" on a light and on a dark page."""

    name: str
    light: str
    dark: str


LIBPQ = Family("libpq", "#5f7186", "#93a5ba")
PSYCOPG = Family("psycopg", "#0072b2", "#4fa8e8")
PSYCOPG2 = Family("psycopg2", "#9c3587", "#d982c4")
ASYNCPG = Family("asyncpg", "#5a1fc4", "#9a5cff")
CURSOR = Family("django_cursor", "#00916a", "#2dbd92")
ORM = Family("django_orm", "#d55e00", "#ff8b3d")
PGBENCH = Family("pgbench", "#3d6b1f", "#86c05b")
VIEW = Family("django_view", "#a8325e", "#f07ba6")
HTTP = Family("http", "#1f6f8b", "#58b4d1")
ORM_ASYNC = Family("django_orm_async", "#b01e4f", "#f2769b")
OTHER = Family("other", "#7a6a00", "#d0bf45")


class Rung(IntEnum):
    """The step of a ladder that a layer stands on."""

    CLIENT_LIBRARY = 0
    DRIVER = 1
    CURSOR = 2
    ORM = 3
    VIEW = 4
    SERVER = 5


_NO_BULK = "it has no call of its own to insert many rows: measure the driver's"
NO_PAGE = "it requests a page of the site, and this workload is none"
OF_PAGES = (
    "a page has no ORM call of its own: the layer django_view runs its view, with the ORM and the template"
)
NO_WEB_ROUTE = "none of the routes has a URL: add a target that has one"
NO_DATABASE_ROUTE = "all routes are URLs of a web server: add a route to the database"
DJANGO_BULK = (
    "of the calls that insert many rows, Django has bulk_create of the ORM: a batch, by the best API"
)
NO_ENVIRONMENTS = "its client is no Python program with a driver: it runs in the default environment only"
NO_NAMED_ROWS = "Django's cursor gives tuples; choose row type tuple"


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One kind of client.

    `program` is the module that runs it, "" for the C client. Any one of `modules` must be
    importable there, and `event_loop`. `distributions` are the names of its driver in pip, and
    `requirement` is what `build --drivers` installs. `megabytes` (one client, with its part of
    shared pages) and `start_seconds` (one client alone) are rough predictions. `driver` is the
    driver below a layer of Django, "" for the one that Django chooses.
    """

    name: str
    title: str
    program: str = ""
    modules: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    requirement: str = ""
    event_loop: str = ""  # the package of its event loop, where that is not asyncio's own
    event_loop_requirement: str = ""  # what `build --drivers` installs for it
    remedy: str = ""  # how to get its driver, where `build --drivers` does not bring it
    modes: tuple[str, ...] = MODES
    mode_reason: str = ""  # why it lacks the modes that it lacks
    connection_modes: tuple[str, ...] = ("persistent",)
    #: Why it lacks the connection modes that it lacks.
    connection_reason: str = "its client keeps its connections"
    pool_module: str = ""  # the package of its pool, where that is not its driver's own
    has_workers: bool = False  # can one process run several operations at the same time?
    one_process: bool = False  # does one process make all clients of a variant?
    tool: str = ""  # a program that its client starts, and that makes the load
    one_thread: bool = False  # do all its clients share one thread?
    has_instruments: bool = False  # can its client part the time of an operation?
    is_async: bool = False  # does it call the asynchronous form of the workload's ORM callable?
    note: str = ""  # what pages say about its figures
    copy_modes: tuple[str, ...] = ()  # the modes in which it can COPY rows into a table
    batch_modes: tuple[str, ...] = ()  # the modes in which it can insert a batch of rows
    bulk_apis: tuple[str, ...] = BULK_APIS
    bulk_reason: str = _NO_BULK  # why it lacks one of them
    row_types: tuple[str, ...] = ROW_TYPES
    rung: Rung = Rung.DRIVER
    driver: str = ""
    family: Family = OTHER
    megabytes: int = 40
    start_seconds: float = 0.2
    needs_site: bool = False  # it measures the site's own Django, in the site's own environment
    loads_libpq: bool = False  # its driver looks for the system's libpq when it starts
    connects: bool = True  # False: it never connects to a database
    over_http: bool = False  # does it request pages from a web server?

    def times_operations(self, connection_mode: str) -> bool:
        """Does it time each operation? pgbench on kept connections counts them only."""
        return not (self.tool and connection_mode == "persistent")

    def bulk_modes(self, kind: str, api: str = "best") -> tuple[str, ...]:
        """The modes in which it can run a bulk operation of a kind of BULK_KINDS by an API of
        BULK_APIS.
        """
        if api not in self.bulk_apis:
            return ()
        return {"copy": self.copy_modes, "batch": self.batch_modes}[kind]

    @property
    def needed_modules(self) -> tuple[tuple[str, ...], ...]:
        """Groups of modules: any one of each group must be importable."""
        return tuple(filter(None, (self.modules, (self.event_loop,) if self.event_loop else ())))

    @property
    def requirements(self) -> tuple[str, ...]:
        """What `build --drivers` installs for it."""
        return tuple(filter(None, (self.requirement, self.event_loop_requirement)))

    @property
    def calls_orm(self) -> bool:
        """Does it call the workload's ORM callable?"""
        return self.rung == Rung.ORM

    @property
    def runs_statements(self) -> bool:
        """Does it run the workload's statements, as all layers below the ORM do?"""
        return self.rung < Rung.ORM

    @property
    def requests_pages(self) -> bool:
        """Does it request a page of the site, as all layers above the ORM do?"""
        return self.rung > Rung.ORM

    @property
    def has_environments(self) -> bool:
        """Is its client a Python program whose driver and Django are measured?"""
        return bool(self.program) and not (self.tool or self.over_http)

    @property
    def may_run_elsewhere(self) -> bool:
        """Does any Python with the driver do, because the layer measures the driver alone?"""
        return bool(self.modules) and not self.needs_site


_PROGRAMS = "pgperf.clients.programs"
_BINDS_ON_CLIENT = "psycopg2 always binds on the client: it has neither extended nor prepared statements"
_RECONNECTS = ("persistent", "per_operation")
_POOLS = (*_RECONNECTS, "pool")
_DJANGO_RECONNECTS = (*_RECONNECTS, "request")
_OF_REQUESTS = "only Django has requests"
_HTTP_CONNECTIONS = "a browser keeps its connection or makes a new one: choose persistent or per_operation"
_NO_POOL = f"libpq has no pool, and {_OF_REQUESTS}"
_PSYCOPG2_POOL = (
    "psycopg2's own pool is not measured: it neither waits for a connection nor checks one, so few sites use it"
    f" (choose psycopg for a pool); {_OF_REQUESTS}"
)
_DJANGO_POOL = "Django has a pool over psycopg 3 only"
_PSYCOPG_WHEEL = "psycopg[binary,pool]>=3.2,<4"
_PGBENCH_POOL = "pgbench keeps its connections, or makes a new one for each transaction: it has no pool"
_ASYNC_STAYS = "Django keeps its connection in the thread that runs all asynchronous queries"
#: The drivers that Django can use, the one that it prefers first.
DJANGO_DRIVERS = ("psycopg", "psycopg2")

_PGBENCH = Layer(
    name="pgbench",
    title="pgbench",
    program=f"{_PROGRAMS}.pgbench_client",
    connection_modes=("persistent", "per_operation"),
    connection_reason=_PGBENCH_POOL,
    one_process=True,
    tool="pgbench",
    family=PGBENCH,
    megabytes=25,
    start_seconds=0.2,
)
_PSYCOPG = Layer(
    name="psycopg",
    title="psycopg 3",
    program=f"{_PROGRAMS}.psycopg_client",
    has_workers=True,
    modules=("psycopg",),
    distributions=("psycopg",),
    requirement=_PSYCOPG_WHEEL,
    copy_modes=MODES,
    batch_modes=MODES,
    family=PSYCOPG,
    connection_modes=_POOLS,
    connection_reason=_OF_REQUESTS,
    pool_module="psycopg_pool",
)
_PSYCOPG_ASYNC = replace(
    _PSYCOPG,
    name="psycopg_async",
    title="psycopg 3 (async)",
    program=f"{_PROGRAMS}.psycopg_async_client",
)
_ASYNCPG = Layer(
    name="asyncpg",
    title="asyncpg",
    program=f"{_PROGRAMS}.asyncpg_client",
    has_workers=True,
    modules=("asyncpg",),
    distributions=("asyncpg",),
    requirement="asyncpg>=0.30,<1",
    modes=("extended", "prepared"),
    mode_reason="asyncpg reads rows through the extended protocol only: it has no mode simple",
    copy_modes=("extended", "prepared"),
    batch_modes=("extended", "prepared"),
    family=ASYNCPG,
    megabytes=30,
    start_seconds=0.15,
    connection_modes=_POOLS,
    connection_reason=_OF_REQUESTS,
)
_DJANGO_CURSOR = Layer(
    name="django_cursor",
    title="Django cursor",
    program=f"{_PROGRAMS}.django_client",
    has_workers=True,
    modules=DJANGO_DRIVERS,
    rung=Rung.CURSOR,
    row_types=("tuple",),
    family=CURSOR,
    megabytes=50,
    start_seconds=0.4,
    needs_site=True,
    connection_modes=CONNECTION_MODES,
    pool_module="psycopg_pool",
)
_DJANGO_ORM = replace(
    _DJANGO_CURSOR,
    name="django_orm",
    title="Django ORM",
    batch_modes=MODES,
    bulk_apis=("best",),
    bulk_reason=DJANGO_BULK,
    rung=Rung.ORM,
    family=ORM,
)


def _on_uvloop(layer: Layer, title: str) -> Layer:
    """The same client on uvloop's event loop."""
    return replace(
        layer,
        name=f"{layer.name}_uvloop",
        title=title,
        distributions=(*layer.distributions, "uvloop"),
        event_loop="uvloop",
        event_loop_requirement="uvloop>=0.21,<1",
    )


def _on_psycopg2(layer: Layer) -> Layer:
    """The same layer of Django over psycopg2, beside the one over the driver that Django chooses."""
    return replace(
        layer,
        name=f"{layer.name}_psycopg2",
        title=f"{layer.title} on psycopg2",
        modules=("psycopg2",),
        modes=("simple",),
        mode_reason=_BINDS_ON_CLIENT,
        batch_modes=("simple",) if layer.batch_modes else (),
        driver="psycopg2",
        connection_modes=_DJANGO_RECONNECTS,
        connection_reason=_DJANGO_POOL,
        pool_module="",
    )


#: In the order of tables and charts: each rung above the one that it stands on.
LAYERS: dict[str, Layer] = {
    layer.name: layer
    for layer in (
        Layer(
            name="libpq",
            title="libpq (C)",
            rung=Rung.CLIENT_LIBRARY,
            copy_modes=MODES,
            batch_modes=("extended", "prepared"),
            bulk_reason="libpq sends a batch as a pipeline, which has no simple statements",
            family=LIBPQ,
            megabytes=2,
            start_seconds=0.02,
            connection_modes=_RECONNECTS,
            connection_reason=_NO_POOL,
        ),
        _PGBENCH,
        replace(
            _PGBENCH,
            name="pgbench_one_thread",
            title="pgbench -j 1",
            one_thread=True,
            note=gettext_noop(
                "pgbench -j 1: one thread makes all connections, one after the other. Where its clients connect for"
                " each transaction, they wait for each other’s connects, so its throughput is that of one client."
            ),
        ),
        Layer(
            name="psycopg2",
            title="psycopg2",
            program=f"{_PROGRAMS}.psycopg2_client",
            has_workers=True,
            modules=("psycopg2",),
            distributions=("psycopg2", "psycopg2-binary"),
            requirement="psycopg2-binary>=2.9.10,<3",
            modes=("simple",),
            mode_reason=_BINDS_ON_CLIENT,
            copy_modes=("simple",),
            batch_modes=("simple",),
            family=PSYCOPG2,
            megabytes=30,
            start_seconds=0.1,
            connection_modes=_RECONNECTS,
            connection_reason=_PSYCOPG2_POOL,
        ),
        _on_psycopg2(_DJANGO_CURSOR),
        _on_psycopg2(_DJANGO_ORM),
        _PSYCOPG,
        replace(
            _PSYCOPG,
            name="psycopg_c",
            title="psycopg 3 (C)",
            modules=("psycopg_c",),
            distributions=("psycopg-c",),
            requirement="",
            remedy="pip install 'psycopg[c]', which needs a C compiler and libpq's headers",
        ),
        replace(
            _PSYCOPG,
            name="psycopg_binary",
            title="psycopg 3 (binary)",
            modules=("psycopg_binary",),
            distributions=("psycopg-binary",),
        ),
        replace(_PSYCOPG, name="psycopg_python", title="psycopg 3 (Python)", loads_libpq=True),
        _PSYCOPG_ASYNC,
        _on_uvloop(_PSYCOPG_ASYNC, "psycopg 3 (async, uvloop)"),
        _ASYNCPG,
        _on_uvloop(_ASYNCPG, "asyncpg (uvloop)"),
        _DJANGO_CURSOR,
        _DJANGO_ORM,
        Layer(
            name="django_orm_async",
            title="Django ORM (async)",
            program=f"{_PROGRAMS}.django_async_client",
            connection_reason=_ASYNC_STAYS,
            has_workers=True,
            is_async=True,
            note=gettext_noop(
                "Django ORM (async): Django runs the queries of its asynchronous methods in one thread, with one"
                " connection. The tasks of a process do not overlap; each waits until the others' queries have ended."
            ),
            modules=DJANGO_DRIVERS,
            rung=Rung.ORM,
            row_types=("tuple",),
            family=ORM_ASYNC,
            megabytes=50,
            start_seconds=0.4,
            needs_site=True,
        ),
        Layer(
            name="django_view",
            title="ORM, view and template",
            program=f"{_PROGRAMS}.django_view_client",
            modules=DJANGO_DRIVERS,
            rung=Rung.VIEW,
            has_instruments=True,
            row_types=("tuple",),
            family=VIEW,
            megabytes=60,
            start_seconds=0.6,
            needs_site=True,
            connection_modes=("persistent",),
            connection_reason="the view is timed without connecting: choose persistent",
        ),
        Layer(
            name="http",
            title="HTTP",
            program=f"{_PROGRAMS}.http_client",
            modules=("pycurl",),
            distributions=("pycurl",),
            requirement="pycurl>=7.45.4,<8",
            modes=("simple",),
            mode_reason="a page is requested by HTTP, which has no statement modes",
            rung=Rung.SERVER,
            family=HTTP,
            megabytes=16,
            start_seconds=0.2,
            connects=False,
            over_http=True,
            connection_modes=_RECONNECTS,
            connection_reason=_HTTP_CONNECTIONS,
        ),
        Layer(
            name="fake",
            title="fake (no database)",
            program=f"{_PROGRAMS}.fake_client",
            has_workers=True,
            megabytes=20,
            start_seconds=0.08,
            connects=False,
            connection_modes=CONNECTION_MODES,
        ),
    )
}

#: The layer on the lowest rung: ladders begin with it, and others are compared with it.
BASE_LAYER = min(LAYERS.values(), key=lambda layer: layer.rung).name
#: The layer that captures the statements of a site's own call.
ORM_LAYER = "django_orm"
#: The layer that runs statements through Django's cursor, over the driver that the site has.
CURSOR_LAYER = next(layer.name for layer in LAYERS.values() if layer.rung == Rung.CURSOR and not layer.driver)
#: The layer that runs a page in process.
VIEW_LAYER = next(layer.name for layer in LAYERS.values() if layer.rung == Rung.VIEW)
#: The layer that requests a page from a web server.
SERVER_LAYER = next(layer.name for layer in LAYERS.values() if layer.rung == Rung.SERVER)


def cursor_of(layer: str) -> str:
    """The layer of Django's cursor over the driver of this one of Django's layers."""
    own = LAYERS[layer].driver
    return next(each.name for each in LAYERS.values() if each.rung == Rung.CURSOR and each.driver == own)


def calls_orm(layer: str) -> bool:
    """Does the layer call the workload's ORM callable? A layer of another version does not."""
    return layer in LAYERS and LAYERS[layer].calls_orm


def runs_statements(layer: str) -> bool:
    """Does the layer run the workload's statements? A layer of another version does."""
    return layer not in LAYERS or LAYERS[layer].runs_statements


def has_workers(layer: str) -> bool:
    """Can one of its processes run several operations at the same time?"""
    return layer in LAYERS and LAYERS[layer].has_workers


def requests_pages(layer: str) -> bool:
    """Does the layer request a page? A layer of another version does not."""
    return layer in LAYERS and LAYERS[layer].requests_pages


def over_http(layer: str) -> bool:
    """Does the layer request pages from a web server? A layer of another version does not."""
    return layer in LAYERS and LAYERS[layer].over_http


def has_instruments(layer: str) -> bool:
    """Can its client part the time of an operation? A layer of another version cannot."""
    return layer in LAYERS and LAYERS[layer].has_instruments


def is_async(layer: str) -> bool:
    """Does it call asynchronous methods of Django, whose queries run in one thread?"""
    return layer in LAYERS and LAYERS[layer].is_async


def connects(layer: str) -> bool:
    """Does the layer connect to a database? A layer of another version does."""
    return layer not in LAYERS or LAYERS[layer].connects


def one_process(layer: str) -> bool:
    """Does one process make all clients of a variant? A layer of another version has one for each."""
    return layer in LAYERS and LAYERS[layer].one_process


def runs_tool(layer: str) -> bool:
    """Does another program make its load, which connects in each slice? A layer of another version
    has none.
    """
    return layer in LAYERS and bool(LAYERS[layer].tool)


def times_operations(layer: str, connection_mode: str) -> bool:
    """Does the layer time each operation? A layer of another version does."""
    return layer not in LAYERS or LAYERS[layer].times_operations(connection_mode)


def connecting(layer: str, connection_mode: str) -> str:
    """The name, beside those of layers, of a layer in one of its connection modes."""
    return f"{layer} · {connection_mode}"


def has_environments(layer: str) -> bool:
    """Does the layer run in the Python of an environment? A layer of another version does not."""
    return layer in LAYERS and LAYERS[layer].has_environments


def place_of(layer: str) -> str:
    """The layer on the same rung of the ladder on Django's own driver; the layer itself where there
    is none.
    """
    entry = LAYERS.get(layer)
    if entry is None or not entry.driver:
        return layer
    same = (other.name for other in LAYERS.values() if other.rung == entry.rung and not other.driver)
    return next(same, layer)


def ladder_on(driver: str) -> list[str]:
    """The layers of Django's own ladder, lowest first, where Django uses this driver."""
    rungs = (
        entry
        for entry in LAYERS.values()
        if entry.connects and not (entry.driver or entry.is_async or entry.requests_pages)
    )
    return [entry.name for entry in rungs if entry.rung != Rung.DRIVER or entry.name == driver]


def distributions() -> tuple[str, ...]:
    """The names of all drivers in pip."""
    return tuple(dict.fromkeys(name for layer in LAYERS.values() for name in layer.distributions))
