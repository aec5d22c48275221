"""A throw-away certificate authority: the cluster's CA, its server certificate, its users."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True)
class Pair:
    """Files of one certificate and its private key, PEM."""

    certificate: Path
    key: Path


class Authority:
    """A CA whose files live in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench-ca")])
        now = datetime.datetime.now(datetime.timezone.utc)
        certificate = (
            _builder(self._name, self._name, self._key.public_key(), now, now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = directory / "ca.crt"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, groups: Sequence[str] = (), hosts: Sequence[str] = (), *, expired: bool = False) -> Pair:
        """A certificate for user `name` in `groups`, or for a server at `hosts` (names or addresses).

        An expired one ended an hour ago.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.COMMON_NAME, name),
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            ]
        )
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=-1 if expired else 23)
        builder = _builder(subject, self._name, key.public_key(), end - datetime.timedelta(days=1), end).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]),
            critical=False,
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256())
        stem = f"{name.replace(':', '-').replace('/', '-')}{'-expired' if expired else ''}"
        pair = Pair(self._directory / f"{stem}.crt", self._directory / f"{stem}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair

    def signing_key(self) -> Path:
        """A private key by which the API server signs service account tokens."""
        path = self._directory / "service-accounts.key"
        _write_key(path, ec.generate_private_key(ec.SECP256R1()))
        return path


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    start: datetime.datetime,
    end: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            # The API server derives public keys from this form only.
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
