"""The keys of a `DATABASES` alias's OPTIONS under pgperf: kept, overridden or refused, and why.

A client of the site's own workload connects over the Target's route, with the Target's login. So
keys that choose an address, a login or a kind of session give way. docs/your-queries.md has the
same table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pgperf.core.exceptions import InvalidDefinition


class Handling(StrEnum):
    """What pgperf does with a key."""

    KEPT = "kept"
    OVERRIDDEN = "overridden"  # by pgperf's value, or by the driver's default
    REFUSED = "refused"


@dataclass(frozen=True)
class OptionRule:
    """Keys of OPTIONS that are handled alike."""

    keys: tuple[str, ...]
    handling: Handling
    reason: str


RULES = (
    OptionRule(
        ("host", "hostaddr", "port", "dbname", "load_balance_hosts", "service", "servicefile"),
        Handling.OVERRIDDEN,
        "the Target has the address, and the Database the name",
    ),
    OptionRule(
        ("user", "password", "passfile", "scram_client_key", "scram_server_key",
         "oauth_issuer", "oauth_client_id", "oauth_client_secret", "oauth_scope"),
        Handling.OVERRIDDEN,
        "the Database's or the Target's credential is the login",
    ),
    OptionRule(
        ("sslmode",),
        Handling.OVERRIDDEN,
        "the Target's",
    ),
    OptionRule(
        ("sslrootcert",),
        Handling.KEPT,
        "unless the Target names a file",
    ),
    OptionRule(
        ("sslcert", "sslkey", "sslpassword", "sslcrl", "sslcrldir", "sslsni", "sslcompression",
         "ssl_min_protocol_version", "ssl_max_protocol_version", "min_protocol_version", "max_protocol_version"),
        Handling.KEPT,
        "Django's layers alone use them",
    ),
    OptionRule(
        ("sslnegotiation", "sslcertmode", "channel_binding", "requirepeer"),
        Handling.OVERRIDDEN,
        "by the default: the wire proxy, through which pgperf captures statements, cannot meet these demands",
    ),
    OptionRule(
        ("sslkeylogfile",),
        Handling.OVERRIDDEN,
        "by the default: a run leaves no key of its connections behind",
    ),
    OptionRule(
        ("require_auth",),
        Handling.KEPT,
        "unless it allows a password in clear text, which pgperf forbids",
    ),
    OptionRule(
        ("gssencmode",),
        Handling.OVERRIDDEN,
        "`disable`, as in every layer",
    ),
    OptionRule(
        ("krbsrvname", "gsslib", "gssdelegation"),
        Handling.KEPT,
        "Django's layers alone use them",
    ),
    OptionRule(
        ("target_session_attrs",),
        Handling.OVERRIDDEN,
        "`any`: a read-only session can never be `read-write`, and a Target is one server",
    ),
    OptionRule(
        ("options",),
        Handling.KEPT,
        "the read-only session's settings are added",
    ),
    OptionRule(
        ("application_name", "connect_timeout"),
        Handling.OVERRIDDEN,
        "by the run's: it finds its sessions by their name, and has a deadline",
    ),
    OptionRule(
        ("fallback_application_name", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count",
         "tcp_user_timeout"),
        Handling.KEPT,
        "they do not affect an operation",
    ),
    OptionRule(
        ("client_encoding", "context", "autocommit"),
        Handling.OVERRIDDEN,
        "Django sets them itself",
    ),
    OptionRule(
        ("isolation_level",),
        Handling.KEPT,
        "Django's layers alone use it",
    ),
    OptionRule(
        ("assume_role",),
        Handling.KEPT,
        "Django's layers alone use it: the other layers act as the login, and are left out where they may not read",
    ),
    OptionRule(
        ("server_side_binding", "prepare_threshold"),
        Handling.OVERRIDDEN,
        "by the benchmark's mode",
    ),
    OptionRule(
        ("cursor_factory",),
        Handling.OVERRIDDEN,
        "by the benchmark's mode; kept in mode `simple` with the driver that the site uses",
    ),
    OptionRule(
        ("row_factory", "connection_factory"),
        Handling.KEPT,
        "with the driver that the site uses",
    ),
    OptionRule(
        ("pool",),
        Handling.OVERRIDDEN,
        "by the benchmark's connection mode: a pool of one connection in `pool`, else none",
    ),
    OptionRule(
        ("conninfo", "dsn"),
        Handling.REFUSED,
        "a connection string may lead elsewhere; write its parts as keys",
    ),
    OptionRule(
        ("replication", "async", "async_"),
        Handling.REFUSED,
        "Django cannot run queries over such a connection",
    ),
)  # fmt: skip

_RULES_BY_KEY = {key: rule for rule in RULES for key in rule.keys}
#: Classes of the site's own driver.
_FACTORIES = ("cursor_factory", "row_factory", "connection_factory")
_CLEAR_TEXT = "password"


def handling(key: str) -> Handling:
    """What pgperf does with a key. It keeps keys that it does not know."""
    rule = _RULES_BY_KEY.get(key)
    return rule.handling if rule else Handling.KEPT


def kept(alias: str, options: Mapping[str, Any], mode: str, layer: str) -> dict[str, Any]:
    """The OPTIONS of the alias that a client of that mode and layer uses.

    Raises InvalidDefinition if one is refused.
    """
    for key, value in options.items():
        if value and handling(key) == Handling.REFUSED:
            reason = _RULES_BY_KEY[key].reason
            raise InvalidDefinition(f"OPTIONS[{key!r}] of the alias {alias!r}: {reason}")
    return {key: value for key, value in options.items() if _stays(key, value, mode, layer)}


def _stays(key: str, value: Any, mode: str, layer: str) -> bool:
    if key in _FACTORIES and layer.endswith("_psycopg2"):
        return False
    if key == "cursor_factory":
        return mode == "simple"
    if key == "require_auth":
        return not allows_clear_text(str(value))
    return handling(key) == Handling.KEPT


def allows_clear_text(require_auth: str) -> bool:
    """Does this value of libpq's keyword allow the server to ask for the password in clear text?"""
    methods = [method.strip() for method in require_auth.split(",") if method.strip()]
    if all(method.startswith("!") for method in methods):
        return f"!{_CLEAR_TEXT}" not in methods
    return _CLEAR_TEXT in methods
