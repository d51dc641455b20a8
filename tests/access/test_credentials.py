"""Sources of passwords, the hosts they may go to, and errors without passwords."""

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from pgperf.access import credentials
from pgperf.core.exceptions import CredentialError
from pgperf.models import Database
from tests.factories import make_database

SECRET = "s3cr3t=never shown"
pytestmark = pytest.mark.django_db


@pytest.fixture
def aliases(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """DATABASES with aliases of the test's own."""
    base = {
        "ENGINE": "django.db.backends.postgresql",
        "USER": "app",
        "PASSWORD": SECRET,
        "HOST": "db.example",
    }
    more = {
        "app": base,
        "nobody": {**base, "USER": ""},
        "lite": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
    }
    for name, alias in more.items():
        monkeypatch.setitem(connections.databases, name, alias)
    return more


def database(credential: str, host: str = "db.example", **fields: Any) -> Database:
    row = make_database(credential=credential, **fields)
    row.targets.update(host=host)
    return row


def resolve(row: Database) -> credentials.Route:
    return credentials.resolve(row, ["tcp"])["tcp"]


def test_an_alias_gives_its_login(aliases: dict[str, Any]) -> None:
    route = resolve(database("alias:app"))
    assert (route.host, route.user, route.password, route.dbname) == ("db.example", "app", SECRET, "app")


def test_a_pooled_route_has_its_pool_mode(aliases: dict[str, Any]) -> None:
    routes = credentials.resolve(database("alias:app"), ["pgbouncer", "socket"])
    assert list(routes) == ["pgbouncer", "socket"]
    assert (routes["pgbouncer"].pooler, routes["socket"].pooler) == ("transaction", "")


def test_an_alias_sends_its_password_to_its_own_host_only(aliases: dict[str, Any]) -> None:
    with pytest.raises(CredentialError, match=r"^host: .*'evil.example'.*ALLOWED_HOSTS"):
        resolve(database("alias:app", "evil.example"))


def test_settings_allow_an_alias_further_hosts(aliases: dict[str, Any], settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "ALLOWED_HOSTS": ["/run/postgresql"]}
    assert resolve(database("alias:app", "/run/postgresql")).host == "/run/postgresql"
    for host in ("/run/postgresql/..", "/run", "127.0.0.1"):
        with pytest.raises(CredentialError, match=r"^host: "):
            resolve(database("alias:app", host, name=f"d{host.count('/')}"))


@pytest.mark.parametrize(
    ("host", "port", "allowed_hosts", "entry"),
    [
        ("db.example", 5432, [], ""),
        ("db.example", 6432, [], "db.example:6432"),
        ("db.example", 6432, ["db.example"], "db.example:6432"),
        ("db.example", 6432, ["db.example:6433"], "db.example:6432"),
        ("db.example", 6432, ["db.example:6432"], ""),
        ("db.example", 6432, ["db.example:*"], ""),
        ("other.example", 5432, ["other.example"], ""),
        ("other.example", 5433, ["other.example"], "other.example:5433"),
        ("other.example", 5432, ["db.example:*"], "other.example:5432"),
        ("::1", 6432, ["::1"], "[::1]:6432"),
        ("::1", 6432, ["[::1]:6432"], ""),
        ("::1", 5432, ["::1"], ""),
        ("/run/postgresql", 6432, ["/run/postgresql"], "/run/postgresql:6432"),
        ("/run/postgresql", 6432, ["/run/postgresql:6432"], ""),
        ("db.example", 6432, ["db.example:64320", "db.example:", "*", "db.example:6432 "], "db.example:6432"),
    ],
)
def test_an_alias_password_goes_to_its_own_port_or_to_an_entry(
    aliases: dict[str, Any], settings: Any, host: str, port: int, allowed_hosts: list[str], entry: str
) -> None:
    settings.PGPERF = {**settings.PGPERF, "ALLOWED_HOSTS": allowed_hosts}
    row = database("alias:app", host)
    row.targets.update(port=port)
    if not entry:
        assert resolve(row).port == port
        return
    with pytest.raises(CredentialError, match=rf"^host: .*add '{re.escape(entry)}' to PGPERF\['ALLOWED"):
        resolve(row)
    settings.PGPERF = {**settings.PGPERF, "ALLOWED_HOSTS": [entry]}
    assert resolve(row).port == port


@pytest.mark.parametrize(
    ("credential", "user", "message"),
    [
        ("alias:missing", "", "credential: DATABASES has no alias 'missing'"),
        ("alias:lite", "", "credential: alias 'lite' of DATABASES is not a PostgreSQL database"),
        ("alias:nobody", "", "credential: alias 'nobody' of DATABASES has no USER"),
        ("alias:app", "root", "user: leave it empty"),
        ("env:PGPERF_SECRET_MISSING", "app", "credential: PGPERF_SECRET_MISSING is not set"),
        ("env:HOME", "app", "credential: the variable's name must start with PGPERF_SECRET_"),
        ("env:PGPERF_SECRET_X", "", "user: "),
        ("file:x", "app", "credential: no file 'x' in PGPERF"),
        ("file:x", "", "user: "),
        ("postgres://app:pw@host/db", "app", "credential: "),
        ("", "app", "credential: "),
    ],
)
def test_a_refused_credential_says_why(
    aliases: dict[str, Any], credential: str, user: str, message: str
) -> None:
    with pytest.raises(CredentialError, match=f"^{message}"):
        resolve(database(credential, user=user))


def test_a_route_without_a_target_is_refused(aliases: dict[str, Any]) -> None:
    with pytest.raises(CredentialError, match=r"routes: .*no enabled target for vpn"):
        credentials.resolve(database("alias:app"), ["tcp", "vpn"])


def test_a_password_from_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPERF_SECRET_X", SECRET)
    route = resolve(database("env:PGPERF_SECRET_X", user="bench"))
    assert (route.user, route.password) == ("bench", SECRET)


@pytest.fixture
def secrets_dir(tmp_path: Path, settings: Any) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (tmp_path / "outside").write_text(SECRET)
    settings.PGPERF = {**settings.PGPERF, "SECRETS_DIR": str(folder)}
    return folder


def test_a_password_from_a_file(secrets_dir: Path) -> None:
    (secrets_dir / "bench").write_text(f"{SECRET}\n")
    assert resolve(database("file:bench", user="bench")).password == SECRET


def test_a_link_inside_the_secrets_directory_is_allowed(secrets_dir: Path) -> None:
    (secrets_dir / "real").write_text(SECRET)
    (secrets_dir / "bench").symlink_to("real")
    assert resolve(database("file:bench", user="bench")).password == SECRET


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "link", "", ".", "missing", "a/../../outside"])
def test_a_path_outside_the_secrets_directory_is_refused(secrets_dir: Path, name: str) -> None:
    (secrets_dir / "link").symlink_to("../outside")
    with pytest.raises(CredentialError, match="credential: no file"):
        resolve(database(f"file:{name}", user="bench"))


def test_a_binary_file_is_refused(secrets_dir: Path) -> None:
    (secrets_dir / "bench").write_bytes(b"\xff\xfe")
    with pytest.raises(CredentialError, match="not UTF-8") as caught:
        resolve(database("file:bench", user="bench"))
    assert caught.value.__cause__ is None


def test_no_representation_contains_a_password(
    aliases: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    route = resolve(database("alias:app"))
    assert SECRET not in repr(route)
    assert SECRET not in repr(credentials._login(database("alias:app", name="b")))
    monkeypatch.setitem(os.environ, "PGPERF_SECRET_X", SECRET)
    with pytest.raises(CredentialError) as caught:
        resolve(database("alias:app", "evil.example", name="c"))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("host", "db.example,evil.example"),
        ("host", "postgres://evil.example"),
        ("host", "db.example user=root"),
        ("port", 0),
        ("port", 65536),
        ("sslmode", "none"),
        ("pooler", "statement"),
    ],
)
def test_an_unvalidated_target_is_checked_at_use(aliases: dict[str, Any], field: str, value: Any) -> None:
    row = database("alias:app")
    row.targets.update(**{field: value})
    with pytest.raises(CredentialError, match=f"^{field}: "):
        resolve(row)


@pytest.mark.parametrize(
    ("field", "value"),
    [("dbname", "host=evil.example"), ("user", "app options=-cx=y"), ("dbname", "app\nx"), ("dbname", "%zz")],
)
def test_an_unvalidated_database_is_checked_at_use(aliases: dict[str, Any], field: str, value: str) -> None:
    with pytest.raises(CredentialError, match=f"^{field}: "):
        resolve(database("env:PGPERF_SECRET_X", **{"user": "bench", field: value}))


def test_strict_hosts_hold_for_every_credential(
    aliases: dict[str, Any], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPERF_SECRET_X", SECRET)
    row = database("env:PGPERF_SECRET_X", user="bench")
    assert resolve(row).host == "db.example"
    settings.PGPERF = {**settings.PGPERF, "STRICT_HOSTS": True}
    with pytest.raises(CredentialError, match=r"^host: .*STRICT_HOSTS"):
        resolve(row)
    settings.PGPERF = {**settings.PGPERF, "ALLOWED_HOSTS": ["db.example"]}
    assert resolve(row).host == "db.example"


@pytest.fixture
def shared(tmp_path: Path) -> str:
    """A directory like /tmp, of another name."""
    folder = tmp_path / "all"
    folder.mkdir()
    folder.chmod(0o1777)
    return str(folder)


def test_no_password_goes_to_a_world_writable_socket_directory(
    secrets_dir: Path, shared: str, settings: Any
) -> None:
    (secrets_dir / "bench").write_text(SECRET)
    row = database("file:bench", shared, user="bench")
    with pytest.raises(
        CredentialError, match=r"^host: .*everybody may open a socket.*ALLOWED_HOSTS"
    ) as caught:
        resolve(row)
    assert SECRET not in str(caught.value)
    settings.PGPERF = {**settings.PGPERF, "ALLOWED_HOSTS": [shared]}
    assert resolve(row).host == shared


@pytest.mark.parametrize("mode", [0o755, 0o775, 0o2770])
def test_a_password_goes_to_a_restricted_socket_directory(secrets_dir: Path, shared: str, mode: int) -> None:
    (secrets_dir / "bench").write_text(SECRET)
    Path(shared).chmod(mode)
    assert resolve(database("file:bench", shared, user="bench")).host == shared


def test_a_missing_socket_directory_is_left_to_the_driver(secrets_dir: Path, tmp_path: Path) -> None:
    (secrets_dir / "bench").write_text(SECRET)
    missing = str(tmp_path / "missing")
    assert resolve(database("file:bench", missing, user="bench")).host == missing


def test_an_alias_may_use_the_socket_directory_of_the_site(aliases: dict[str, Any], shared: str) -> None:
    aliases["app"]["HOST"] = shared
    assert resolve(database("alias:app", shared)).host == shared


def verifying(name: str) -> Database:
    row = database("alias:app")
    row.targets.update(sslmode="verify-full", sslrootcert=name)
    return row


def test_certificates_are_files_in_the_secrets_directory(aliases: dict[str, Any], secrets_dir: Path) -> None:
    (secrets_dir / "ca.crt").write_text("-----BEGIN CERTIFICATE-----")
    route = resolve(verifying("ca.crt"))
    assert (route.sslmode, route.sslrootcert) == ("verify-full", str(secrets_dir / "ca.crt"))
    assert resolve(database("alias:app", name="plain")).sslrootcert == ""


@pytest.mark.parametrize("name", ["missing.crt", "../outside", "link"])
def test_certificates_outside_the_directory_are_refused(
    aliases: dict[str, Any], secrets_dir: Path, name: str
) -> None:
    (secrets_dir / "link").symlink_to(secrets_dir.parent / "outside")
    with pytest.raises(CredentialError, match=r"^sslrootcert: "):
        resolve(verifying(name))


def test_files_need_the_secrets_directory_setting(aliases: dict[str, Any], settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "SECRETS_DIR": ""}
    with pytest.raises(CredentialError, match=r"^credential: a file needs PGPERF\['SECRETS_DIR'\]"):
        resolve(database("file:x", user="app", name="secret"))
    with pytest.raises(CredentialError, match=r"^sslrootcert: a file needs PGPERF\['SECRETS_DIR'\]"):
        resolve(verifying("ca.crt"))


def test_certificates_without_verification_are_refused(aliases: dict[str, Any], secrets_dir: Path) -> None:
    (secrets_dir / "ca.crt").write_text("")
    row = verifying("ca.crt")
    row.targets.update(sslmode="require")
    with pytest.raises(CredentialError, match=r"^sslrootcert: .*verify-full"):
        resolve(row)


def test_a_clear_text_password_is_allowed_by_the_target_alone(
    aliases: dict[str, Any], secrets_dir: Path
) -> None:
    (secrets_dir / "ca.crt").write_text("")
    assert not resolve(verifying("ca.crt")).allow_cleartext_password
    row = Database.objects.get()
    row.targets.update(allow_cleartext_password=True)
    assert resolve(row).allow_cleartext_password
    row.targets.update(sslmode="verify-ca")
    with pytest.raises(CredentialError, match=r"^allow_cleartext_password: .*verify-full"):
        resolve(row)


def with_login(user: str, credential: str) -> Database:
    row = database("alias:app")
    row.targets.filter(route="pgbouncer").update(user=user, credential=credential)
    return row


def test_a_route_may_have_its_own_login(aliases: dict[str, Any], secrets_dir: Path) -> None:
    (secrets_dir / "reader").write_text("another")
    routes = credentials.resolve(with_login("reader", "file:reader"), ["tcp", "pgbouncer"])
    assert [(route.user, route.password) for route in routes.values()] == [
        ("app", SECRET),
        ("reader", "another"),
    ]


@pytest.mark.parametrize(
    ("user", "credential", "message"),
    [
        ("reader", "", "user: target .*pgbouncer has a wrong one"),
        ("", "file:reader", "user: target .*pgbouncer needs one"),
        ("a b", "file:reader", "user: target .*pgbouncer has a wrong one"),
        ("reader", "another", "credential: target .*pgbouncer has a wrong one"),
        ("reader", "alias:app", "user: leave it empty"),
    ],
)
def test_an_incomplete_login_is_refused(
    aliases: dict[str, Any], secrets_dir: Path, user: str, credential: str, message: str
) -> None:
    with pytest.raises(CredentialError, match=f"^{message}"):
        credentials.resolve(with_login(user, credential), ["pgbouncer"])


def test_an_alias_password_stays_with_its_host(aliases: dict[str, Any]) -> None:
    row = with_login("", "alias:app")
    row.targets.update(host="evil.example")
    with pytest.raises(CredentialError, match=r"^host: .*'evil.example'"):
        credentials.resolve(row, ["pgbouncer"])


WEB = "http://site.example:8000"


def web_target(row: Database, **fields: Any) -> None:
    row.targets.create(**{"route": "web", "url": WEB, **fields})


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The addresses that names lead to; a test may change them."""
    found = {"site.example": "127.0.0.9"}

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        if host not in found:
            raise OSError("Name or service not known")
        return [(0, 0, 0, "", (found[host], port))]

    monkeypatch.setattr("pgperf.access.credentials.socket.getaddrinfo", getaddrinfo)
    return found


def test_a_url_leads_to_the_address_that_its_name_had_when_it_was_checked(
    settings: Any, names: dict[str, str]
) -> None:
    settings.PGPERF = {**settings.PGPERF, "WEB_URLS": [WEB]}
    row = make_database(credential="alias:no such alias")
    web_target(row)
    route = credentials.resolve(row, ["web"])["web"]
    names["site.example"] = "192.0.2.1"
    assert (route.url, route.host, route.port) == (WEB, "127.0.0.9", 8000)
    assert (route.user, route.password, route.dbname) == ("", "", "")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A web server on one of two addresses."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        found.settimeout(10)
        yield found


def host_of(port: int, addresses: list[str], settings: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a URL leads whose name has these addresses."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr("pgperf.access.credentials.socket.getaddrinfo", getaddrinfo)
    url = f"http://localhost:{port}"
    settings.PGPERF = {**settings.PGPERF, "WEB_URLS": [url]}
    row = make_database()
    web_target(row, url=url)
    host = credentials.resolve(row, ["web"])["web"].host
    assert asked == ["localhost"], "another answer could lead elsewhere"
    return host


def test_of_several_addresses_the_first_that_accepts_is_taken(
    listener: socket.socket, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of localhost, whose server listens by one IP version only."""
    port = listener.getsockname()[1]
    assert host_of(port, ["127.0.0.2", "127.0.0.1"], settings, monkeypatch) == "127.0.0.1"


def test_where_no_address_accepts_the_first_is_taken(
    listener: socket.socket, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = listener.getsockname()[1]
    assert host_of(port, ["127.0.0.2", "127.0.0.3"], settings, monkeypatch) == "127.0.0.2"


def test_a_single_address_is_taken_without_a_connection(
    listener: socket.socket, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = listener.getsockname()[1]
    assert host_of(port, ["127.0.0.1"], settings, monkeypatch) == "127.0.0.1"
    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_the_worker_checks_the_url_again(settings: Any, names: dict[str, str]) -> None:
    row = make_database()
    web_target(row)
    with pytest.raises(CredentialError, match=r"^url: .*WEB_URLS"):
        credentials.resolve(row, ["web"])


def test_a_name_that_cannot_be_resolved_is_named(settings: Any, names: dict[str, str]) -> None:
    settings.PGPERF = {**settings.PGPERF, "WEB_URLS": [WEB]}
    row = make_database()
    web_target(row)
    names.clear()
    with pytest.raises(
        CredentialError, match=r"^url: the name in http://site\.example:8000 .* cannot be resolved"
    ):
        credentials.resolve(row, ["web"])


def test_the_most_direct_route_is_one_to_the_database(settings: Any, aliases: dict[str, Any]) -> None:
    row = database("alias:app")
    web_target(row)
    assert not credentials.direct_route(row).url
    row.targets.filter(url="").delete()
    with pytest.raises(CredentialError, match="has no enabled target"):
        credentials.direct_route(row)
