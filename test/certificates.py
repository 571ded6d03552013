"""A certificate of this machine, signed by itself."""

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
