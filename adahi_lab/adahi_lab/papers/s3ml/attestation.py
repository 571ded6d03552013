# SPDX-License-Identifier: Apache-2.0
"""What a replica runs, and the evidence of it: an interface, and an emulation without hardware.

A real attester asks the hardware (Intel SGX or TDX, AMD SEV-SNP), and its appraiser checks the maker's
certificates. **The emulated one protects nothing:** its key file is enough to claim any measurement. It
lets the rest of the chain run and be tested where there is no such hardware.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic.dataclasses import dataclass as checked_dataclass

import adahi_lab
import adahi_ros
from adahi_lab.papers.s3ml.key_files import secret_of
from adahi_ros.core.assets import CHECKPOINTS, named
from adahi_ros.core.files import LARGEST_WEIGHTS, read_bytes
from adahi_ros.core.schema import Listed, Schema, load, must
from adahi_ros.core.texts import NAME_LENGTH
from adahi_ros.core.yaml_files import read_yaml

DESCRIBED = (".yaml", ".yml")  # files that describe a policy
PROGRAM = Path(adahi_ros.__file__).parent, Path(adahi_lab.__file__).parent
DIGITS = 64  # of a measurement, and of an emulated platform's public key, in hex


def _is_hex(text: str) -> bool:
    return len(text) == DIGITS and set(text) <= set("0123456789abcdef")


Digest = Annotated[str, must(f"be {DIGITS} lower-case hexadecimal digits", _is_hex)]
PlatformName = Annotated[
    str,
    must(
        f"be a printable name of 1 to {NAME_LENGTH} characters",
        lambda text: 0 < len(text) <= NAME_LENGTH and text.isprintable(),
    ),
]


class AttestationError(Exception):
    """Evidence is refused; the message says why."""


@dataclass(frozen=True)
class Evidence:
    """What a platform says about the program that runs on it.

    Attributes:
        platform: its name.
        measurement: of program and policy, see `measure`.
        report: what the program bound to the evidence, 32 bytes.
        signature: of the platform over all of these.
    """

    platform: str
    measurement: str
    report: bytes
    signature: bytes

    @property
    def signed(self) -> bytes:
        """What the signature covers."""
        return b"\0".join(
            [b"adahi_ros evidence", self.platform.encode(), self.measurement.encode(), self.report]
        )


class Attester(ABC):
    """On the replica's side: gets evidence from the platform."""

    @abstractmethod
    def attest(self, report: bytes) -> Evidence:
        """Return evidence that is bound to a report of 32 bytes."""


class Appraiser(ABC):
    """On the key service's side: checks that evidence is genuine."""

    @abstractmethod
    def appraise(self, evidence: Evidence) -> None:
        """Check that a platform made the evidence.

        Raises:
            AttestationError: none did, or it is unknown.
        """


def measure(files: Iterable[Path]) -> str:
    """Return the measurement of files: SHA-256 of their names and contents, whatever their folder.

    Raises:
        ValueError: there are none, or two have the same name.
        OSError: one cannot be read.
    """
    found: dict[str, bytes] = {}
    for path in files:
        if path.name in found:
            raise ValueError(f"measured: {path.name} twice, must be different names")
        found[path.name] = hashlib.sha256(read_bytes(path, LARGEST_WEIGHTS)).digest()
    if not found:
        raise ValueError("measured: no files, must be at least one")
    total = hashlib.sha256()
    for name, digest in sorted(found.items()):
        total.update(name.encode() + b"\0" + digest)
    return total.hexdigest()


def measure_replica(checkpoint: Path, packages: Sequence[Path] = PROGRAM) -> str:
    """Return the measurement of a replica: every Python file of its packages, and the files of its policy.

    Of a policy in a YAML file, these are also the checkpoints and LeRobot's folders that the file names.

    Args:
        checkpoint: DIRECTORY/NAME of the policy; its files are NAME.* there.
        packages: their folders.

    Raises:
        FileNotFoundError: there is no such policy.
    """
    policy, *named_by_it = _parts(checkpoint)
    total = hashlib.sha256(measure(policy).encode())
    for files in named_by_it:
        total.update(b"names " + measure(files).encode())
    for package in packages:
        for path in sorted(package.rglob("*.py")):
            total.update(str(path.relative_to(package.parent)).encode() + b"\0")
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _parts(checkpoint: Path) -> list[list[Path]]:
    """Return the files of a policy, then those of each policy that it names, and so on."""
    parts, left, seen = list[list[Path]](), [checkpoint], set[Path]()
    while left:
        at = left.pop(0)
        if at.resolve() in seen:
            continue
        seen.add(at.resolve())
        parts.append(_files(at))
        if not parts[-1]:
            raise FileNotFoundError(f"{at}: no such checkpoint")
        for described in (path for path in parts[-1] if path.suffix in DESCRIBED):
            for text in _texts(read_yaml(described)):
                left += _named(text, described.parent)
    return parts


def _files(at: Path) -> list[Path]:
    """Return the files that a policy may be loaded from: NAME.*, a YAML file, or LeRobot's folder."""
    itself = [at] if at.suffix in DESCRIBED else []
    inside = at.iterdir() if at.is_dir() else ()
    return sorted(path for path in (*itself, *at.parent.glob(f"{at.name}.*"), *inside) if path.is_file())


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


def _named(text: str, folder: Path) -> list[Path]:
    """Return the policy that a text of a YAML file names, beside the file or of the package, if any."""
    for find in (lambda: folder / Path(text).expanduser(), lambda: named(text, CHECKPOINTS)):
        try:
            at = find()
            marks = (
                *(at.with_name(at.name + suffix) for suffix in (".json", *DESCRIBED)),
                at / "config.json",
            )
            if any(mark.is_file() for mark in marks) or (at.suffix in DESCRIBED and at.is_file()):
                return [at]
        except (OSError, ValueError, RuntimeError):  # no path, or nothing there
            continue
    return []


@checked_dataclass(frozen=True)
class AdmittedKeys(Schema):
    """The YAML file of what gets keys.

    Attributes:
        measurements: of admitted replicas.
        platforms: public keys of emulated platforms, by name.
        revoked: platforms and measurements that get no keys any more.
    """

    measurements: Listed[Digest]
    platforms: Mapping[PlatformName, Digest] = field(default_factory=dict)
    revoked: Listed[PlatformName] = ()


def load_admitted(path: Path) -> AdmittedKeys:
    """Read what gets keys; raises as `load`."""
    found: AdmittedKeys = load(AdmittedKeys, path)
    return found


class EmulatedPlatform(Attester):
    """Signs whatever measurement it is made with: for tests and trials, **without any protection**.

    Args:
        key: file of its private key, 32 bytes in hex; created if missing.
        name: of the platform.
        measurement: that it claims.
    """

    def __init__(self, key: Path, name: str, measurement: str) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.from_private_bytes(secret_of(key))
        self._name, self._measurement = name, measurement

    @property
    def public(self) -> str:
        """Its public key, in hex, for `AdmittedKeys.platforms`."""
        return self._key.public_key().public_bytes_raw().hex()

    def attest(self, report: bytes) -> Evidence:
        """See `Attester`."""
        unsigned = Evidence(self._name, self._measurement, report, b"")
        return Evidence(self._name, self._measurement, report, self._key.sign(unsigned.signed))


class EmulatedAppraiser(Appraiser):
    """Checks the signatures of emulated platforms.

    Args:
        admitted: file with their public keys; it is read at each check.
    """

    def __init__(self, admitted: Path) -> None:
        self._admitted = admitted

    def appraise(self, evidence: Evidence) -> None:
        """See `Appraiser`."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        public = load_admitted(self._admitted).platforms.get(evidence.platform)
        if public is None:
            raise AttestationError("platform: unknown")
        try:
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(
                evidence.signature, evidence.signed
            )
        except (InvalidSignature, ValueError):
            raise AttestationError("signature: not of this platform") from None
