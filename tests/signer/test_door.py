"""Who may ask the signer over TCP, and what becomes of those who hang up."""

import json
import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from devstack.ports import free_port
from signer import probe
from signer.client import Certificates, SignerAway, SignerClient
from signer.service import SigningService
from signer.targets import Trust
from signer.transactions import SignedTransaction
from tests.lost_connections import drop_packets
from tests.signer.parts import (
    FakeTargets,
    client_of,
    new_keys,
    new_service,
    relay_call,
    serving,
    wait_until,
)


class Authority:
    """A certificate authority."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = str(folder / f"{name}.pem")
        Path(self.file).write_bytes(
            self._issue(self._name, self._key, is_authority=True).public_bytes(Encoding.PEM)
        )

    def certificates_for(self, name: str, *, trusting: str = "") -> Certificates:
        """Return the files of a new certificate, whose owner trusts this authority or another one."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate, secret = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        certificate.write_bytes(self._issue(subject, key, is_authority=False).public_bytes(Encoding.PEM))
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return Certificates(str(certificate), str(secret), trusting or self.file)

    def _issue(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        usage = x509.KeyUsage(True, False, False, False, False, is_authority, is_authority, False, False)
        local = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
        authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            builder.add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(local, critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(authority_key, critical=False)
            .sign(self._key, SHA256())
        )


@pytest.fixture
def targets() -> FakeTargets:
    return FakeTargets()


@pytest.fixture
def service(tmp_path: Path, targets: FakeTargets) -> SigningService:
    return new_service(tmp_path, new_keys(), targets)


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ours")


@pytest.fixture
def tls_url(tmp_path: Path, service: SigningService, ours: Authority) -> Iterator[str]:
    with serving(tmp_path, service, port=free_port(), certificates=ours.certificates_for("signer")) as url:
        yield url


def test_a_request_on_a_lost_connection_is_repeated_on_a_new_one(
    tls_url: str, service: SigningService, targets: FakeTargets, ours: Authority
) -> None:
    client = SignerClient(tls_url, timeout_seconds=120, certificates=ours.certificates_for("web"))
    call = relay_call(service.keys().relayers[0], targets.key_manager())
    client.keys()
    lost = client._persistent.connection
    drop_packets(lost.sock)

    assert isinstance(client.sign([call])[0], SignedTransaction)

    assert client._persistent.connection is not lost
    assert client._lost_at > 0


def test_over_tcp_only_clients_with_a_certificate_of_the_authority_are_served(
    tls_url: str, service: SigningService, targets: FakeTargets, ours: Authority, tmp_path: Path
) -> None:
    call = relay_call(service.keys().relayers[0], targets.key_manager())
    web = SignerClient(tls_url, timeout_seconds=120, certificates=ours.certificates_for("web"))
    assert isinstance(web.sign([call])[0], SignedTransaction)
    foreign = Authority(tmp_path, "foreign")
    clients = {
        "foreign certificate": SignerClient(
            tls_url, timeout_seconds=120, certificates=foreign.certificates_for("mallory", trusting=ours.file)
        ),
        "no certificate": SignerClient(tls_url, timeout_seconds=120),
        # Nor does the service believe a signer whom its own authority does not know.
        "foreign signer": SignerClient(
            tls_url, timeout_seconds=120, certificates=ours.certificates_for("worker", trusting=foreign.file)
        ),
    }
    clients["no certificate"]._tls = lambda: ssl.create_default_context(cafile=ours.file)  # type: ignore[assignment]
    other = relay_call(call.address, call.transaction.to, account_nonce=1)
    for client in clients.values():
        with pytest.raises(SignerAway):
            client.sign([other])
        with pytest.raises(SignerAway):
            client.keys()
    assert service.signed_ever() == 1
    assert isinstance(web.sign([other])[0], SignedTransaction)


def test_renewed_certificates_are_used_without_a_restart(
    tmp_path: Path, service: SigningService, ours: Authority
) -> None:
    certificates = {name: ours.certificates_for(name) for name in ("signer", "web")}
    with serving(tmp_path, service, port=free_port(), certificates=certificates["signer"]) as url:
        web = SignerClient(url, timeout_seconds=120, certificates=certificates["web"])
        assert web.keys().relayers
        web._connection().close()
        # Another authority takes over, of which neither side has heard.
        theirs = Authority(tmp_path, "ours")
        for name in certificates:
            theirs.certificates_for(name)
        stranger = SignerClient(
            url, timeout_seconds=120, certificates=theirs.certificates_for("worker", trusting=theirs.file)
        )
        assert stranger.keys().relayers
        web._persistent.connection.close()
        assert web.keys().relayers


def test_certificates_that_cannot_be_read_leave_those_before_in_use(
    tmp_path: Path, service: SigningService, ours: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = ours.certificates_for("signer")
    with serving(tmp_path, service, port=free_port(), certificates=certificates) as url:
        Path(certificates.certificate).write_text("half of a file")
        web = SignerClient(url, timeout_seconds=120, certificates=ours.certificates_for("web"))
        assert web.keys().relayers
    assert "changed certificates cannot be read" in caplog.text


def test_a_probe_that_only_connects_is_not_logged(
    tls_url: str, ours: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = tls_url.removeprefix("https://").split(":")
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            socket.create_connection((host, int(port)), timeout=60).close()
        # Served after them.
        assert SignerClient(tls_url, timeout_seconds=120, certificates=ours.certificates_for("web")).keys()
    assert "ended early" not in caplog.text


def test_a_refusal_is_logged_with_its_reason_and_the_transactions_terms(
    service: SigningService, targets: FakeTargets, caplog: pytest.LogCaptureFixture
) -> None:
    call = relay_call(service.keys().relayers[0], targets.key_manager(Trust.NONE), account_nonce=7)

    service.sign([call])

    assert "the called contract is not a key manager" in caplog.text
    assert all(text in caplog.text for text in (call.address, call.transaction.to, "account nonce 7"))


def test_the_signers_log_is_json() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "signer"], env={}, capture_output=True, text=True, check=False
    )
    (line,) = map(json.loads, run.stderr.splitlines())
    assert (run.returncode, line["logger"], line["level"]) == (1, "signer", "error")
    assert line["event"].startswith("Misconfigured: ")


def test_the_containers_health_check_imports_no_signer_code_and_detects_a_dead_signer(
    tmp_path: Path, service: SigningService
) -> None:
    def probed(listen: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-X", "importtime", "-I", probe.__file__]
        environment = {**os.environ, "SIGNER_LISTEN": listen}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    with serving(tmp_path, service) as url:
        healthy = probed(url)
        assert healthy.returncode == 0
        imported = {line.rpartition("|")[2].strip() for line in healthy.stderr.splitlines()}
        assert "socket" in imported
        # The package itself loads a library of signatures.
        assert not imported & {"signer", "ssl", "http.client", "importlib.metadata"}
    assert probed(url).returncode == 1


def test_a_client_that_disconnects_in_the_queue_gets_nothing_signed(
    tmp_path: Path, service: SigningService, targets: FakeTargets
) -> None:
    call = relay_call(service.keys().relayers[0], targets.key_manager())
    with serving(tmp_path, service) as url:
        patient, hasty = client_of(url), SignerClient(url, timeout_seconds=0.2)
        results: list[object] = []
        waiting = threading.Thread(target=lambda: results.append(patient.sign([call])))
        with service._lock:
            with pytest.raises(SignerAway):
                hasty.sign([relay_call(service.keys().relayers[0], call.transaction.to, account_nonce=1)])
            waiting.start()
        waiting.join()
        (signed,) = patient.sign([call])
        assert results == [[signed]]
        wait_until(lambda: service.counts["undecided"] == 1)
    assert service.signed_ever() == 1
