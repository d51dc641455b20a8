"""Creates a certificate for the pooler and its certificate authority, trusted only by this stack.

The `cryptography` package is pinned and needs no system program, unlike openssl(1). The key of the
authority is not stored: a new certificate gets a new authority.
"""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from example.stack.place import Place

AUTHORITY = "ca.crt"  # in the directory for secrets
LIFETIME = timedelta(days=3650)
RENEW_BEFORE = timedelta(days=30)


def ensure(place: Place) -> Path:
    """Create `server.crt` and `server.key` unless they are valid; return the path of the authority."""
    authority = place.secrets() / AUTHORITY
    directory = place.directory("certificates")
    if not _is_valid(authority) or not all(
        (directory / name).exists() for name in ("server.crt", "server.key")
    ):
        _make(place, directory, authority)
    return authority


def _is_valid(path: Path) -> bool:
    if not path.exists():
        return False
    ends = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    return ends - RENEW_BEFORE > datetime.now(UTC)


def _make(place: Place, directory: Path, authority: Path) -> None:
    signer, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = _certificate(
        "pgperf embedded stack", signer.public_key(), "pgperf embedded stack", signer, root=True
    )
    server = _certificate("localhost", key.public_key(), "pgperf embedded stack", signer, root=False)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    place.secret_file(directory / "server.key", private.decode())
    place.secret_file(directory / "server.crt", server.public_bytes(Encoding.PEM).decode())
    place.own_file(authority, root.public_bytes(Encoding.PEM).decode())


def _certificate(
    name: str, key: ec.EllipticCurvePublicKey, issuer: str, signer: ec.EllipticCurvePrivateKey, root: bool
) -> x509.Certificate:
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))])
    builder = (
        x509.CertificateBuilder()
        .subject_name(_common_name(name))
        .issuer_name(_common_name(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=root, path_length=0 if root else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if root:
        builder = builder.add_extension(_signing_usage(), critical=True)
    else:
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256())


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _signing_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        key_cert_sign=True, crl_sign=True, digital_signature=False, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
