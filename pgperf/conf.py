"""pgperf's settings: one `PGPERF` dict over typed defaults, read when asked for."""

import sys
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed


def default_build_dir() -> str:
    """A directory of the virtual environment; without one, of the user.

    The environment's Python runs the site and its worker, whichever users these have.
    """
    if sys.prefix != sys.base_prefix:
        return str(Path(sys.prefix, "pgperf"))
    try:
        return str(Path.home() / ".cache" / "pgperf")
    except RuntimeError:  # a user without a home, as in a container
        return str(Path(sys.prefix, "pgperf"))


@dataclass(frozen=True)
class Settings:
    """Every key of `PGPERF` with its default. Unknown keys and wrong types are refused by name."""

    QUEUE: str = "pgperf"
    #: Where `pgperf build` puts the C client.
    BUILD_DIR: str = field(default_factory=default_build_dir)
    #: Layer -> the Python that runs its client, for those whose driver this environment lacks.
    INTERPRETERS: dict[str, str] = field(default_factory=dict)
    #: Name -> another Python in which clients of a variant run; pgperf.core.client_environment has
    #: the form of an entry.
    ENVIRONMENTS: dict[str, Any] = field(default_factory=dict)
    #: Show pgperf in Django's default admin site; else the site calls pgperf.admin.register(its
    #: own).
    ADMIN_AUTOREGISTER: bool = True
    #: pg_config of the libpq that the C client links to; "" looks on PATH.
    PG_CONFIG: str = ""
    #: The pgbench that the layer pgbench runs; "" looks on PATH, then where pg_config points.
    PGBENCH: str = ""
    CC: str = "cc"
    #: The one directory that `file:` credentials and a target's sslrootcert may name files in; ""
    #: allows none.
    SECRETS_DIR: str = ""
    #: Hosts that a target may send a `DATABASES` alias's credential to, besides the alias's own
    #: address; pgperf.db.allowed_hosts has the form of an entry.
    ALLOWED_HOSTS: list[str] = field(
        default_factory=lambda: ["localhost", "127.0.0.1", "::1", "/run/postgresql", "/var/run/postgresql"]
    )
    #: The web servers that the layer http may request pages from, by scheme, name, port and the
    #: site's prefix there, if any: "https://site.example/shop", "http://127.0.0.1:8000".
    WEB_URLS: list[str] = field(default_factory=list)
    #: Send no credential at all, whatever its kind, to a host that is neither allowed nor its
    #: alias's own.
    STRICT_HOSTS: bool = False
    #: Models ("app.Model" or "app.*") and fields ("app.Model.field") that no query without code may
    #: read, besides those of pgperf.workloads.secret_models.
    REFUSED_MODELS: list[str] = field(default_factory=list)
    REFUSED_FIELDS: list[str] = field(default_factory=list)
    #: Volatile functions of the site, "schema.name" each, that SQL written by a user may call.
    ALLOWED_FUNCTIONS: list[str] = field(default_factory=list)
    #: Users as whom a page may be requested, by the name that they log in with; never staff.
    PAGE_USERS: list[str] = field(default_factory=list)
    #: May a run pin processes that it did not start to CPUs, where the system lets it: its backends,
    #: PostgreSQL's main process where clients reconnect, the pooler, and web servers with their proxy?
    PIN_SERVER: bool = True
    MAX_RUN_SECONDS: int = 1800
    MAX_CLIENTS: int = 64
    #: Memory that the clients of a run may take together, MiB; 0: half of what is free when it
    #: starts.
    RUN_MEMORY_MB: int = 0
    #: Share of the server's free connection slots that one run may take.
    CONNECTION_SHARE: float = 0.25
    #: A run on a production Database ends when the server's load passes one of these; 0: no limit.
    #: Lag of a standby, sessions that wait for locks, and used connections in % of all.
    PRODUCTION_LAG_SECONDS: float = 10.0
    PRODUCTION_LAG_MB: float = 256.0
    PRODUCTION_LOCK_WAITS: int = 5
    PRODUCTION_CONNECTIONS: float = 90.0
    HEARTBEAT_SECONDS: float = 5.0
    #: A running run without a heartbeat for so long is lost.
    STALE_SECONDS: float = 30.0
    #: Days after its end that `pgperf prune` keeps a run's raw blocks, and the run itself; 0: for
    #: ever.
    KEEP_RAW_DAYS: int = 90
    KEEP_RUNS_DAYS: int = 0
    #: Users, by the name that they log in with, who get an e-mail when a run's end shows a change.
    CHANGE_EMAILS: list[str] = field(default_factory=list)
    #: Where browsers reach the site, for links in e-mail: "https://ops.example.com"; "": links have
    #: the path only.
    SITE_URL: str = ""

    @property
    def programs(self) -> dict[str, str]:
        """What starts the clients: layer -> Python, and the PostgreSQL programs that are set."""
        return {**self.INTERPRETERS, "pgbench": self.PGBENCH, "pg_config": self.PG_CONFIG}


def get_settings() -> Settings:
    """The settings in force. Raises ImproperlyConfigured naming the key that is wrong."""
    global _cached
    if _cached is None:
        _cached = _read(getattr(django_settings, "PGPERF", {}))
    return _cached


_cached: Settings | None = None


def _read(given: Any) -> Settings:
    if not isinstance(given, dict):
        raise ImproperlyConfigured(f"PGPERF must be a dict, not {type(given).__name__}.")
    defaults = Settings()
    names = [f.name for f in fields(Settings)]
    for key, value in given.items():
        if key not in names:
            raise ImproperlyConfigured(
                f"PGPERF[{key!r}] is not a setting of pgperf; choose from {', '.join(names)}."
            )
        if wrong := _wrong(key, value, type(getattr(defaults, key))):
            raise ImproperlyConfigured(f"PGPERF[{key!r}] must {wrong}.")
    values: dict[str, Any] = {k: str(v) if isinstance(v, Path) else v for k, v in given.items()}
    return Settings(**{key: _of_any_directory(key, value) for key, value in values.items()})


def _of_any_directory(key: str, value: Any) -> Any:
    """A setting whose paths are absolute, if clients read them: these start in another directory."""
    if key == "BUILD_DIR":
        return str(Path(value).absolute())
    if key == "PGBENCH":
        return _program(value)
    if key == "INTERPRETERS":
        return {layer: _program(python) for layer, python in value.items()}
    return value


def _program(name: str) -> str:
    """A name without a slash is looked up on PATH."""
    return str(Path(name).absolute()) if "/" in name else name


def _wrong(key: str, value: Any, want: type) -> str:
    """What the value must be and is not; "" if it is right."""
    accepted = (int, float) if want is float else (str, Path) if want is str else want
    if not isinstance(value, accepted) or (want is int and isinstance(value, bool)):
        return f"be {want.__name__}, not {type(value).__name__}"
    if key == "QUEUE" and not str(value).strip():
        return "name a queue, not be empty"
    if isinstance(value, list) and not all(map(_is_text, value)):
        return "be a list of strings"
    if isinstance(value, int | float) and value < 0:
        return f"be 0 or more, not {value}"
    if isinstance(value, dict) and not all(map(_is_text, value)):
        return "have strings as its keys"
    if isinstance(value, dict) and key == "INTERPRETERS" and not all(map(_is_text, value.values())):
        return "have strings as its values"
    return ""


def _is_text(item: Any) -> bool:
    return isinstance(item, str)


def _forget(*, setting: str, **_: Any) -> None:
    global _cached
    if setting == "PGPERF":
        _cached = None


setting_changed.connect(_forget)
