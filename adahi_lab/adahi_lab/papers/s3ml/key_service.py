# SPDX-License-Identifier: Apache-2.0
"""Releases the keys of a verifier's enclave to attested replicas only, after S3ML's key management.

Ma et al., "S3ML: A Secure Serving System for Machine Learning Inference", arXiv 2010.06212. A replica gets a
nonce, binds it and a public key of its own to evidence of what it runs, and receives the keys sealed for that
public key. So no disk image has keys, and a later replica can serve at once. Robots accept only a verifier
with these keys (SROS 2), so they refuse an unattested one without any attestation of their own.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from adahi_lab.papers.s3ml.attestation import (
    Appraiser,
    AttestationError,
    Attester,
    Evidence,
    load_admitted,
)
from adahi_lab.papers.s3ml.key_files import packed
from adahi_ros.core.texts import printable

NONCE_BYTES = KEY_BYTES = 32
NONCE_S = 60.0  # how long a nonce is valid
DEADLINE_BYTES, TAG_BYTES = 8, 16  # of a nonce; random bytes are between them
PURPOSE = b"adahi keys of a verifier"


@dataclass(frozen=True)
class KeyRequest:
    """A replica's request.

    Attributes:
        nonce: of the service, 32 bytes.
        public: the replica's X25519 key for this request, 32 bytes.
        evidence: bound to both.
    """

    nonce: bytes
    public: bytes
    evidence: Evidence


@dataclass(frozen=True)
class Sealed:
    """Keys that only one replica can open.

    Attributes:
        public: the service's X25519 key for this reply.
        content: encrypted and authenticated.
    """

    public: bytes
    content: bytes


def report_of(nonce: bytes, public: bytes) -> bytes:
    """Return what evidence is bound to, 32 bytes."""
    return hashlib.sha256(PURPOSE + nonce + public).digest()


class KeyService:
    """See the module.

    Args:
        machine: the folder of keys that it releases, such as KEYSTORE/machines/server; read at each release.
        admitted: file of admitted measurements, and of revoked ones; read at each release.
        appraiser: checks evidence.
        clock: monotonic time in seconds.
        say: called with each release and refusal.
    """

    def __init__(
        self,
        machine: Path,
        admitted: Path,
        appraiser: Appraiser,
        clock: Callable[[], float],
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._machine, self._admitted, self._appraiser = machine, admitted, appraiser
        self._clock, self._say = clock, say
        self._secret = secrets.token_bytes(KEY_BYTES)
        self._used: dict[bytes, float] = {}  # nonces that keys were released for, until they are too old

    def challenge(self) -> bytes:
        """Return a new nonce.

        It has its deadline and a tag of this service, which stores none: so no flood of challenges voids one.
        """
        deadline = int(1e3 * (self._clock() + NONCE_S)).to_bytes(DEADLINE_BYTES, "big")
        made = deadline + secrets.token_bytes(NONCE_BYTES - DEADLINE_BYTES - TAG_BYTES)
        return made + self._tag(made)

    def release(self, request: KeyRequest) -> Sealed:
        """Return the keys, sealed for a replica.

        Raises:
            AttestationError: it gets none; says why.
            ValueError: the service's own files cannot be used.
        """
        evidence = request.evidence
        try:
            self._check(request)
            sealed = _seal(packed(self._machine), request)
        except AttestationError as refused:
            self._log(f"refused: {evidence.platform!r}, measurement {evidence.measurement[:16]}: {refused}")
            raise
        except (ValueError, OSError) as fault:
            self._log(f"cannot release keys: {fault}")
            raise
        self._used[request.nonce] = self._deadline_s(request.nonce)
        self._log(f"released: to {evidence.platform!r}, measurement {evidence.measurement[:16]}")
        return sealed

    def _log(self, line: str) -> None:
        self._say(printable(line))  # a request's words must not be a line of their own

    def _tag(self, made: bytes) -> bytes:
        return hmac.digest(self._secret, made, "sha256")[:TAG_BYTES]

    def _deadline_s(self, nonce: bytes) -> float:
        return 1e-3 * int.from_bytes(nonce[:DEADLINE_BYTES], "big")

    def _check(self, request: KeyRequest) -> None:
        evidence, nonce, now_s = request.evidence, request.nonce, self._clock()
        self._used = {used: until_s for used, until_s in self._used.items() if until_s >= now_s}
        ours = hmac.compare_digest(self._tag(nonce[:-TAG_BYTES]), nonce[-TAG_BYTES:])
        if not ours or nonce in self._used or self._deadline_s(nonce) < now_s:
            raise AttestationError("nonce: unknown, used or too old")
        if evidence.report != report_of(request.nonce, request.public):
            raise AttestationError("report: not of this nonce and key")
        self._appraiser.appraise(evidence)
        admitted = load_admitted(self._admitted)
        for name in (evidence.platform, evidence.measurement):
            if name in admitted.revoked:
                raise AttestationError(f"{name}: revoked")
        if evidence.measurement not in admitted.measurements:
            raise AttestationError("measurement: not admitted")


def _shared(private: object, public: bytes, aad: bytes) -> tuple[bytes, bytes]:
    """Return key (32 bytes) and nonce (12 bytes) for a request; both ends derive the same."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    assert isinstance(private, X25519PrivateKey)
    try:
        secret = private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise AttestationError("public: no X25519 key") from None
    derived = HKDF(SHA256(), KEY_BYTES + 12, salt=aad, info=PURPOSE).derive(secret)
    return derived[:KEY_BYTES], derived[KEY_BYTES:]


def _seal(content: bytes, request: KeyRequest) -> Sealed:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    private, aad = X25519PrivateKey.generate(), report_of(request.nonce, request.public)
    key, nonce = _shared(private, request.public, aad)  # of this request alone
    sealed = ChaCha20Poly1305(key).encrypt(nonce, content, aad)
    return Sealed(private.public_key().public_bytes_raw(), sealed)


def fetch(
    attester: Attester, challenge: Callable[[], bytes], release: Callable[[KeyRequest], Sealed]
) -> bytes:
    """Return the keys of a replica, packed, from a key service.

    Args:
        attester: of this platform.
        challenge: of the service, here or across a network.
        release: likewise.

    Raises:
        AttestationError: the service releases none, or its reply cannot be opened.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    private, nonce = X25519PrivateKey.generate(), challenge()
    public = private.public_key().public_bytes_raw()
    aad = report_of(nonce, public)
    sealed = release(KeyRequest(nonce, public, attester.attest(aad)))
    key, once = _shared(private, sealed.public, aad)
    try:
        return ChaCha20Poly1305(key).decrypt(once, sealed.content, aad)
    except InvalidTag:
        raise AttestationError("keys: sealed for another replica") from None
