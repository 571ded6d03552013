# SPDX-License-Identifier: Apache-2.0
"""Revocation of keys: the X.509 list (RFC 5280) that every other machine has."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

from adahi_ros.core.written_files import replacing

LASTS = timedelta(days=3650)  # as long as sros2's certificates: with an expired list, no key is accepted
CLOCKS_DIFFER = timedelta(days=1)


def revoke(authority: Path, key: Path, certificates: list[Path], revoked: Path) -> None:
    """Add certificates to a list, which is created if missing.

    Args:
        authority: the certificate of the signer.
        key: the private key of the signer, of an elliptic curve, as sros2 makes it.
        certificates: to be revoked.
        revoked: the list.

    Raises:
        ValueError: the key is of another kind.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    now = datetime.now(timezone.utc)
    list_of_all = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(x509.load_pem_x509_certificate(authority.read_bytes()).subject)
        .last_update(now - CLOCKS_DIFFER)
        .next_update(now + LASTS)
    )
    before = list(x509.load_pem_x509_crl(revoked.read_bytes())) if revoked.exists() else []
    for each in before:
        list_of_all = list_of_all.add_revoked_certificate(each)
    for path in certificates:
        list_of_all = list_of_all.add_revoked_certificate(
            x509.RevokedCertificateBuilder()
            .serial_number(x509.load_pem_x509_certificate(path.read_bytes()).serial_number)
            .revocation_date(now)
            .build()
        )
    signing = serialization.load_pem_private_key(key.read_bytes(), None)
    if not isinstance(signing, EllipticCurvePrivateKey):
        raise ValueError(f"{key}: {type(signing).__name__}, must be a key of an elliptic curve")
    signed = list_of_all.sign(signing, hashes.SHA256())
    with replacing(revoked) as path:  # atomic: with a partial list, no key is accepted
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
