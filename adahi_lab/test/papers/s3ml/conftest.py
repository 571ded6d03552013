"""A key service and its clients; a fixture of the command line is the product's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from adahi_lab.papers.s3ml.attestation import Attester, EmulatedAppraiser, EmulatedPlatform
from adahi_lab.papers.s3ml.key_http import key_server
from adahi_lab.papers.s3ml.key_service import KeyService, fetch
from test.cli.conftest import run

__all__ = ["run"]

MEASUREMENT = "ab" * 32
NAME = "rack_1"


class World:
    """A key service with keys to release, and an attested platform."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now_s = folder, 0.0
        self.machine = folder / "keys/machines/server"
        (self.machine / "enclaves/adahi/server").mkdir(parents=True)
        (self.machine / "enclaves/adahi/server/key.pem").write_text("the verifier's private key")
        (self.machine / "crl.pem").write_bytes(bytes(range(256)))
        self.admitted = folder / "admitted.yaml"
        self.platform = self.on(MEASUREMENT)
        self.admit()
        self.lines: list[str] = []
        appraiser = EmulatedAppraiser(self.admitted)
        self.service = KeyService(
            self.machine, self.admitted, appraiser, lambda: self.now_s, self.lines.append
        )

    def on(self, measurement: str, key: str = "platform", name: str = NAME) -> EmulatedPlatform:
        return EmulatedPlatform(self.folder / key, name, measurement)

    def admit(self, **changes: Any) -> None:
        known = {"measurements": [MEASUREMENT], "platforms": {NAME: self.platform.public}}
        self.admitted.write_text(yaml.safe_dump({**known, **changes}))

    def get(self, attester: Attester) -> bytes:
        return fetch(attester, self.service.challenge, self.service.release)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def url(world: World) -> Iterator[str]:
    with key_server(world.service, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
