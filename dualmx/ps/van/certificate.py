"""Certificates of a job: whoever knows its secret can issue one, and accepts no others.

The job's authority is an ECDSA key on P-256 that follows from the secret: HKDF-SHA-256 (RFC 5869) yields 384 bits, from
which FIPS 186-5, A.2.1 makes the scalar. Each process computes that key, issues a certificate for a random key of its
own, and forgets the authority's. So nothing but the secret has to be delivered, in whatever way processes are started,
and one that joins later needs nothing else. P-256 rather than Ed25519, since systems in FIPS mode have it as well.

The only trust anchor of a connection is this authority, and both ends have to present a certificate (RFC 8446, 4.3.2
and 4.4.2). Host names are not compared: a member is whoever knows the secret, wherever it runs. Certificates are valid
at all times (RFC 5280, 4.1.2.5), so that wrong clocks keep nobody out; what ends them is the end of the secret.
"""

from __future__ import annotations

import datetime
import secrets
import ssl
import tempfile
from typing import Any

from ...core.encryption import require_cryptography
from ...core.errors import MXNetError

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of the group of P-256
_BEGIN = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_END = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)  # "no well-defined expiration date"
_USES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


def _authority_key(secret: bytes) -> Any:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    bits = HKDF(hashes.SHA256(), length=48, salt=None, info=b"dualmx authority of the job's certificates").derive(
        secret
    )
    return ec.derive_private_key(int.from_bytes(bits, "big") % (_ORDER - 1) + 1, ec.SECP256R1())


def _certificate(name: str, key: Any, issuer_key: Any, authority: bool) -> Any:
    """A certificate for the public half of `key`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def named(text: str) -> Any:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    use = "key_cert_sign" if authority else "digital_signature"
    builder = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named("dualmx job"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(x509.KeyUsage(**{each: each == use for each in _USES}), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if not authority:
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def contexts(secret: bytes) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS settings of the end that connects, and of the one that accepts.

    Args:
        secret: of the job.

    Raises:
        MXNetError: the cryptography package is missing, or there is no TLS 1.3 here.

    Example:
        >>> here, there = contexts(b"a secret of sixteen bytes or more")
        >>> here.verify_mode.name, here.minimum_version.name
        ('CERT_REQUIRED', 'TLSv1_3')
    """
    require_cryptography()
    if not ssl.HAS_TLSv1_3:
        raise MXNetError(f"{ssl.OPENSSL_VERSION} knows no TLS 1.3, which processes of several hosts need")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    authority_key, key = _authority_key(secret), ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("dualmx job", authority_key, authority_key, True)
    own = _certificate("dualmx process", key, authority_key, False)
    # `ssl` reads keys from files alone; what lies there for a moment opens with a password that is nowhere else.
    password = secrets.token_hex(16)
    pem = own.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.encode()),
    )
    found = []
    with tempfile.NamedTemporaryFile(prefix="dualmx-", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        for protocol in (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER):
            context = ssl.SSLContext(protocol)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_REQUIRED
            context.verify_flags |= ssl.VERIFY_X509_STRICT
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.load_verify_locations(cadata=authority.public_bytes(serialization.Encoding.DER))
            context.load_cert_chain(file.name, password=password)
            found.append(context)
    connecting, accepting = found
    accepting.num_tickets = 0  # no connection is resumed
    return connecting, accepting


__all__ = ["contexts"]
