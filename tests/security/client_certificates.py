"""The certificate of a client in its home, where libpq looks for it, and the authority behind it."""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from example.stack import certificates

_AUTHORITY = "authority of a test"


def issue(home: Path, user: str, authority: Path) -> None:
    """Write a certificate for `user` below `home`, and that of the authority to a file of its own."""
    signer, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = certificates._certificate(_AUTHORITY, signer.public_key(), _AUTHORITY, signer, root=True)
    client = certificates._certificate(user, key.public_key(), _AUTHORITY, signer, root=False)
    folder = home / ".postgresql"
    folder.mkdir(parents=True)
    authority.write_bytes(root.public_bytes(Encoding.PEM))
    (folder / "postgresql.crt").write_bytes(client.public_bytes(Encoding.PEM))
    (folder / "postgresql.key").touch(mode=0o600)
    (folder / "postgresql.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
