"""A server's certificate is accepted exactly where libpq accepts it: both ask the same server."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import asyncpg
import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from example.stack import certificates
from pgperf.clients.programs import asyncpg_client
from pgperf.core import protocol, server_certificate
from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import Route
from pgperf.runner.capture import wire_proxy
from tests import impostor

AUTHORITY = "authority of a test"
MODES = ("prefer", "require", "verify-ca", "verify-full")


class Authority:
    """Signs certificates of servers, and lists those that it has revoked."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = certificates._certificate(AUTHORITY, self._key.public_key(), AUTHORITY, self._key, root=True)
        self.certificate = made.public_bytes(Encoding.PEM)

    def server(self, folder: Path, common_name: str, names: Sequence[str] = ()) -> tuple[Path, Path]:
        """The files of a certificate with these alternative names and of its key."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(certificates._common_name(common_name))
            .issuer_name(certificates._common_name(AUTHORITY))
            .public_key(key.public_key())
            .serial_number(4711)
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
        )
        if names:
            alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
            builder = builder.add_extension(alternatives, critical=False)
        certificate, secret = folder / "server.crt", folder / "server.key"
        certificate.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return certificate, secret

    def revoked(self) -> bytes:
        now = datetime.now(UTC)
        entry = x509.RevokedCertificateBuilder().serial_number(4711).revocation_date(now).build()
        listed = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(certificates._common_name(AUTHORITY))
            .last_update(now - timedelta(days=1))
            .next_update(now + timedelta(days=1))
            .add_revoked_certificate(entry)
        )
        return listed.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, in which libpq looks for its files."""
    (tmp_path / "home" / ".postgresql").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home" / ".postgresql"


Ask = Callable[..., tuple[str, str]]


@pytest.fixture
def ask(tmp_path: Path, home: Path) -> Ask:
    """How libpq and the proxy connect to such a server: `plain` or `tls`, or `refused`."""

    def asked(
        certificate: tuple[Path, Path], sslmode: str, sslrootcert: str = "", host: str = "127.0.0.1"
    ) -> tuple[str, str]:
        with impostor.Impostor(certificate=certificate, ask=impostor.error("plain"),
                               ask_encrypted=impostor.error("tls")) as server:  # fmt: skip
            route = Route("tls", host, server.port, "d", "u", "p", sslmode=sslmode, sslrootcert=sslrootcert)
            return _libpq(route), _proxy(route)

    return asked


def _libpq(route: Route) -> str:
    root = {"sslrootcert": route.sslrootcert} if route.sslrootcert else {}
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(
            host=route.host, hostaddr="127.0.0.1", port=route.port, user="u", dbname="d", sslmode=route.sslmode,
            gssencmode="disable", **root,
        )  # fmt: skip
    said = str(caught.value)  # for prefer, also of its second attempt, without TLS
    return next((way for way in ("tls", "plain") if f"FATAL:  {way}" in said), "refused")


def _proxy(route: Route) -> str:
    try:
        with wire_proxy.connect(route) as connection:
            return "tls" if hasattr(connection, "getpeercert") else "plain"
    except (OSError, ClientFailed):
        return "refused"


@pytest.mark.parametrize("sslmode", MODES)
@pytest.mark.parametrize("root", ["none", "default", "named", "another", "no certificate"])
def test_the_file_of_root_certificates_alone_is_trusted(
    ask: Ask, authority: Authority, home: Path, tmp_path: Path, root: str, sslmode: str
) -> None:
    certificate = authority.server(tmp_path, "127.0.0.1")
    named = tmp_path / "named.crt"
    named.write_bytes(
        {"another": Authority().certificate, "no certificate": b"no"}.get(root, authority.certificate)
    )
    if root == "default":
        named.rename(home / "root.crt")
    libpq, proxy = ask(certificate, sslmode, "" if root in ("none", "default") else str(named))
    assert proxy == libpq


def test_no_authority_of_the_system_is_trusted(
    ask: Ask, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A public authority signs for every host that an impostor owns."""
    (tmp_path / "system.crt").write_bytes(authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.crt"))
    certificate = authority.server(tmp_path, "127.0.0.1")
    assert ask(certificate, "verify-full") == ("refused", "refused")
    assert ask(certificate, "verify-full", "system") == ("tls", "tls")
    assert ask(certificate, "verify-ca", "system") == ("refused", "refused")


@pytest.mark.parametrize("sslmode", MODES)
def test_a_revoked_certificate_is_refused(
    ask: Ask, authority: Authority, home: Path, tmp_path: Path, sslmode: str
) -> None:
    (home / "root.crt").write_bytes(authority.certificate)
    (home / "root.crl").write_bytes(authority.revoked())
    libpq, proxy = ask(authority.server(tmp_path, "127.0.0.1"), sslmode)
    assert proxy == libpq == ("plain" if sslmode == "prefer" else "refused")


def test_asyncpg_refuses_a_revoked_certificate(authority: Authority, home: Path, tmp_path: Path) -> None:
    """With the Target's own authorities too, where pgperf makes the context."""
    (tmp_path / "named.crt").write_bytes(authority.certificate)
    (home / "root.crl").write_bytes(authority.revoked())
    certificate = authority.server(tmp_path, "127.0.0.1", ["127.0.0.1"])
    named = protocol.Spec(layer="asyncpg", sslmode="verify-full", sslrootcert=str(tmp_path / "named.crt"))
    encryption = asyncpg_client.encryption(named)
    with impostor.Impostor(certificate=certificate) as server:
        connecting = asyncpg.connect(host=server.host, port=server.port, user="u", ssl=encryption)
        with pytest.raises(ssl.SSLError, match="revoked"):
            asyncio.run(connecting)


@pytest.mark.parametrize("host", ["127.0.0.1", "db.example.test", "DB.example.test", "localhost", "127.1"])
@pytest.mark.parametrize(
    ("common_name", "names"),
    [
        ("127.0.0.1", ()),
        ("127.0.0.1", ("db.example.test",)),
        ("127.0.0.1", ("127.0.0.2",)),
        ("other", ("127.0.0.1",)),
        ("db.example.test", ()),
        ("db.example.test", ("127.0.0.1",)),
        ("db.example.test", ("other.example.test",)),
        ("other", ("*.example.test",)),
        ("*.example.test", ()),
        ("other", ("*.test", "*")),
        ("other", ("d*.example.test",)),
        ("localhost", ("localhost", "127.0.0.2")),
    ],
)
def test_names_count_as_for_libpq(
    ask: Ask,
    authority: Authority,
    home: Path,
    tmp_path: Path,
    common_name: str,
    names: Sequence[str],
    host: str,
) -> None:
    (home / "root.crt").write_bytes(authority.certificate)
    certificate = authority.server(tmp_path, common_name, names)
    with pytest.MonkeyPatch.context() as patch:
        real = wire_proxy.socket.create_connection
        patch.setattr(
            wire_proxy.socket, "create_connection", lambda at, timeout: real(("127.0.0.1", at[1]), timeout)
        )
        libpq, proxy = ask(certificate, "verify-full", host=host)
    assert proxy == libpq


@pytest.mark.parametrize(
    ("sslmode", "sslrootcert", "named"),
    [
        ("verify-ca", "", "sslrootcert"),
        ("verify-full", "/nonexistent", "sslrootcert"),
        ("require", "system", "sslmode"),
    ],
)
def test_an_error_names_the_setting(home: Path, sslmode: str, sslrootcert: str, named: str) -> None:
    with pytest.raises(ClientFailed, match=f"^{named}: "):
        server_certificate.context(sslmode, sslrootcert)
