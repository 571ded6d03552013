"""Certificates of this machine: signed by itself, or by an authority."""

from __future__ import annotations

import subprocess
from pathlib import Path


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Return the files of a certificate for localhost and of its key."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    made_by = [*made.split(), *named, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made_by, check=True, capture_output=True)
    return certificate, key


def signed(folder: Path) -> tuple[Path, Path, Path]:
    """Return the files of an authority, of a certificate for localhost that it signed, and of its key."""
    authority, authority_key = self_signed(folder)
    signer = [each.rename(folder / f"authority_{each.name}") for each in (authority, authority_key)]
    certificate, key = self_signed(folder)
    request = ["openssl", "x509", "-x509toreq", "-in", str(certificate), "-signkey", str(key)]
    asked = subprocess.run(request, check=True, capture_output=True)
    names = folder / "names"
    names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    by = ["-CA", str(signer[0]), "-CAkey", str(signer[1]), "-CAcreateserial", "-extfile", str(names)]
    sign = ["openssl", "x509", "-req", "-days", "2", *by, "-out", str(certificate)]
    subprocess.run(sign, input=asked.stdout, check=True, capture_output=True)
    return signer[0], certificate, key
