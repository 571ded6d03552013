# SPDX-License-Identifier: Apache-2.0
"""Replicas of a fleet that get keys from a key service, or do not start; see `adahi serve keys`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adahi_lab.papers.s3ml.attestation import EmulatedPlatform, measure_replica
from adahi_lab.papers.s3ml.key_http import fetch_keys
from adahi_ros.core.schema import Text
from adahi_ros.server.ray.start_condition import StartCondition


@dataclass(frozen=True)
class Attested(StartCondition):
    """The start condition `keys`.

    Attributes:
        service: URL of the key service.
        platform: file of the emulated platform's private key, on each machine.
        platform_name: of the platform there.
    """

    service: Text
    platform: Text
    platform_name: Text = "platform"

    def check(self, checkpoint: Path) -> None:
        """Attest this replica, and get the verifier's keys.

        Raises:
            AttestationError: the key service releases none.
            OSError: it cannot be reached, or a file is missing.
        """
        platform = EmulatedPlatform(Path(self.platform), self.platform_name, measure_replica(checkpoint))
        fetch_keys(self.service, platform)
