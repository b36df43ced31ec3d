"""Certificates for mutual TLS under one authority, made for one run."""

import shutil
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from signer.client import Certificates

_LIFETIME = timedelta(days=2)


class Authority:
    """A certificate authority whose key is never saved."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._key = folder, generate_private_key(SECP256R1())
        self._name = _name("cluster")
        basic = x509.BasicConstraints(ca=True, path_length=0)
        certificate = _builder(self._name, self._name, self._key).add_extension(basic, critical=True)
        self._write(folder / "authority.pem", certificate)

    def vouch_for(self, name: str, address: str) -> Certificates:
        """Return the files of a new key and its certificate, valid for a server at the address and for a client."""
        key = generate_private_key(SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        builder = _builder(_name(name), self._name, key).add_extension(names, critical=False)
        folder = self._folder / name
        folder.mkdir()
        private = folder / "tls.key"
        private.touch(0o600)
        private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self._write(folder / "tls.crt", builder)
        shutil.copy(self._folder / "authority.pem", folder / "ca.crt")
        return Certificates.in_folder(str(folder))

    def _write(self, path: Path, builder: x509.CertificateBuilder) -> None:
        path.write_bytes(builder.sign(self._key, SHA256()).public_bytes(Encoding.PEM))


def _builder(subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    return (
        builder.serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
